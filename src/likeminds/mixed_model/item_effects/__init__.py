"""Item effects and item factors: their responses, EM steps, selection and quadrature."""
