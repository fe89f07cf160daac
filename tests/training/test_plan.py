from sentigeo.profile import load_profile
from sentigeo.training.plan import plan_runs


def test_plan_of_the_published_report():
    profile = load_profile("laptop")
    runs = plan_runs(profile, layers=6, handcrafted=True)
    names = [run.name for run in runs]
    assert names.count("without") == names.count("with") == profile.headline_seeds
    for dose in (0, 8, 32, 128):
        own = [run for run in runs if run.name == f"dose_{dose}"]
        assert [run.recipe.seed for run in own] == list(range(profile.seeds))
        assert {run.dose for run in own} == {dose}
        assert len(own) >= 5
    depths = {run.name: run.layers for run in runs if run.reviews}
    assert depths == {"head": 0, "top": profile.trained_layers, "all": 6}
    assert {run.layers for run in runs if run.name in ("without", "with")} == {1.5}
    assert [run.name for run in runs if run.keep] == ["without", "with"]


def test_plan_of_the_paper_profile_trains_all_layers():
    runs = plan_runs(load_profile("paper"), layers=12, handcrafted=True)
    headline = [run for run in runs if run.name in ("without", "with")]
    assert {(run.layers, run.recipe.epochs) for run in headline} == {(12, 6)}


def test_plan_without_handcrafted_samples_has_one_dose():
    runs = plan_runs(load_profile("quick"), layers=6, handcrafted=False)
    assert {run.dose for run in runs} == {0}
    assert "with" not in {run.name for run in runs}


def test_plan_for_a_model_that_cannot_be_cut_has_whole_layers():
    runs = plan_runs(load_profile("quick"), layers=6, handcrafted=True, trunk=False)
    assert {(run.layers, run.recipe.token_share) for run in runs} == {(0, 1), (1, 1), (6, 1)}
