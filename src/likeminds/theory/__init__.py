"""The paper's theorems as functions (in `likeminds.paper.theory`)."""

from likeminds.paper.theory import (
    ConvergenceCertificate,
    GeneralizationBound,
    convergence_certificate,
    generalization_bound,
    lipschitz_bound,
    lipschitz_constant,
)

__all__ = [
    "ConvergenceCertificate",
    "GeneralizationBound",
    "convergence_certificate",
    "generalization_bound",
    "lipschitz_bound",
    "lipschitz_constant",
]
