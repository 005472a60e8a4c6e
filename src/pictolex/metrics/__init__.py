"""Truth meets results: segmentation, classes, places, reconstruction, concepts, clustering. NumPy only; learning never imports this."""

from pictolex.metrics.ari import ari, ari_all, best_foreground_ari, best_order, foreground_ari, mean_known
from pictolex.metrics.classes import Classes, ClassTally
from pictolex.metrics.clustering import accuracy, adjusted_mutual_information, normalised_mutual_information, purity
from pictolex.metrics.concepts import concept_errors, concept_l1, concept_l1_strict
from pictolex.metrics.failures import search_failure_rate
from pictolex.metrics.placements import Places, placements_exact
from pictolex.metrics.reconstruction import Reconstruction, Tally, image_mse, psnr

__all__ = [
    "ClassTally",
    "Classes",
    "Places",
    "Reconstruction",
    "Tally",
    "accuracy",
    "adjusted_mutual_information",
    "ari",
    "ari_all",
    "best_foreground_ari",
    "best_order",
    "concept_errors",
    "concept_l1",
    "concept_l1_strict",
    "foreground_ari",
    "image_mse",
    "mean_known",
    "normalised_mutual_information",
    "placements_exact",
    "psnr",
    "purity",
    "search_failure_rate",
]
