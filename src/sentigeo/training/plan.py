"""The plan of the fine-tuning study: which classifiers are trained, on what, and how."""

import math
from dataclasses import dataclass

from sentigeo.profile import Profile
from sentigeo.training.finetune import Recipe

EVERYTHING = ("validation", "test", "challenge")


@dataclass(frozen=True)
class Run:
    """One classifier to train.

    Attributes:
        name: Condition it belongs to: `without`, `with`, `head_only`, `dose_<n>`; and, on fewer
            reviews, `head`, `top` and `all`.
        layers: Trained layers; 0 trains the classification head only, 1.5 one layer and
            half of the next.
        dose: Handcrafted samples among the training texts.
        reviews: Reviews to train on, the first of the training rows; 0 takes all.
        recipe: How to train.
        scored: Parts of the corpus that are scored; validation is scored after every epoch.
        keep: Whether the model itself is kept as a checkpoint.
    """

    name: str
    layers: float
    dose: int
    reviews: int
    recipe: Recipe
    scored: tuple[str, ...] = EVERYTHING
    keep: bool = False


def plan_runs(profile: Profile, layers: int, handcrafted: bool, trunk: bool = True) -> list[Run]:
    """List the runs of a profile.

    Args:
        profile: Says how deep, how often and how long to train.
        layers: Layers of the encoder.
        handcrafted: Whether the data have handcrafted samples; without them there is one dose, 0.
        trunk: Whether the encoder can be cut; without that whole layers are trained, on all tokens.
    """
    top, last = min(profile.trained_layers, layers), min(profile.dose_layers, layers)
    if not trunk:
        profile = profile.model_copy(update={"token_share": 1.0})
        top, last = math.floor(top), math.floor(last)
    conditions, doses = {"without": 0}, [0]
    if handcrafted:
        conditions["with"] = profile.contrastive_samples
        doses = profile.doses
    runs = []
    for seed in range(profile.headline_seeds):
        recipe = _recipe(profile, top, layers, seed, profile.epochs, profile.batch_size)
        runs += [Run(n, top, d, 0, recipe, keep=seed == 0) for n, d in conditions.items()]
        recipe = _recipe(profile, 0, layers, seed, profile.epochs, profile.batch_size)
        runs.append(Run("head_only", 0, 0, 0, recipe, scored=("test", "challenge")))
    kept = {(run.layers, run.dose, run.recipe) for run in runs if run.keep}
    for seed in range(profile.seeds):
        recipe = _recipe(profile, last, layers, seed, profile.dose_epochs, profile.batch_size)
        for dose in doses:
            keep = (last, dose, recipe) in kept
            runs.append(Run(f"dose_{dose}", last, dose, 0, recipe, keep=keep))
    for name, depth in {"head": 0, "top": min(top, 2), "all": layers}.items():
        recipe = _recipe(profile, depth, layers, 0, profile.epochs, profile.depth_batch_size)
        runs.append(Run(name, depth, 0, profile.depth_reviews, recipe, scored=("depth",)))
    return runs


def _recipe(
    profile: Profile, depth: float, layers: int, seed: int, epochs: int, batch_size: int
) -> Recipe:
    rates: dict[float, float] = {0: profile.head_learning_rate, layers: profile.all_learning_rate}
    return Recipe(
        epochs=epochs,
        learning_rate=rates.get(depth, profile.learning_rate),
        batch_size=batch_size,
        token_share=profile.token_share if 1 < depth < layers else 1.0,
        seed=seed,
    )
