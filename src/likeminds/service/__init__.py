"""An HTTP service around a saved model, and a page on which visitors teach it their taste."""
