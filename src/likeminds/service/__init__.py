"""An HTTP service around a saved model, and a page on which visitors label items."""
