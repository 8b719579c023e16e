"""Save and load models as safetensors files, without pickle."""
