"""Effects of covariates of people: W_i ~ N(theta + Gamma z_i, Omega)."""

from dataclasses import dataclass

import numpy as np

from likeminds._util.array_types import Float, IdArray
from likeminds.data.covariates import CovariateEncoder, Covariates

# Variances less than this share of the largest are rounding.
_LEAST = 1e-10


@dataclass(frozen=True)
class CovariateEffects:
    """Effects of covariates on people's weights, learned from a crowd.

    Attributes
    ----------
    encoder : CovariateEncoder
        How covariates become z.
    slopes : array of shape (p, k)
        Gamma.
    ridges : array of shape (n_covariates,)
        The ridge penalty of the columns of each covariate.
    scatter : array of shape (k, k)
        The covariance of z in the crowd.
    unsure : array of shape (p, p)
        The posterior covariance of Gamma z, on average over the crowd.
    """

    encoder: CovariateEncoder
    slopes: Float
    ridges: Float
    scatter: Float
    unsure: Float

    @property
    def covariance(self) -> Float:
        """The covariance between people of Gamma z, shape (p, p)."""
        return np.asarray(self.slopes @ self.scatter @ self.slopes.T)

    def told(self, size: int) -> Float:
        """Return a matrix K of few rows and so many columns, with K'K the covariance of Gamma z."""
        values, vectors = np.linalg.eigh(self.covariance)
        there = values > _LEAST * max(float(values[-1]), 1e-300)
        rows = (vectors[:, there] * np.sqrt(values[there])).T
        return np.pad(rows, ((0, 0), (0, size - rows.shape[1])))

    def shifts(self, covariates: Covariates | None, people: IdArray) -> Float:
        """Return Gamma z of people, by their ids, shape (n_people, p)."""
        return np.asarray(self.encoder.of_people(covariates, people) @ self.slopes.T)

    def examples(self, name: str) -> list[tuple[str | None, Float]]:
        """Return Gamma z by category, or of a standard deviation more; all else being average."""
        place = self.encoder.names.index(name)
        own = self.slopes[:, self.encoder.blocks == place]
        kinds, scale = self.encoder.categories[place], self.encoder.scales[place]
        if kinds is None:
            return [(None, column) for column in own.T]
        z = (np.eye(len(kinds)) - np.array(self.encoder.centres[place])) / (scale or 1.0)
        return list(zip(kinds, z @ own.T, strict=True))

    def covariance_by(self, name: str) -> Float:
        """Return the covariance between people of one covariate's part of Gamma z, shape (p, p)."""
        own = self.encoder.blocks == self.encoder.names.index(name)
        slopes = self.slopes[:, own]
        return np.asarray(slopes @ self.scatter[np.ix_(own, own)] @ slopes.T)
