"""The task of docs/extending.md is probed like the others."""

from pathlib import Path

from tests.pages import example

from downstream import InputOptions, ProbeData, ProbeOptions, run_probe


def test_a_task_of_a_page_is_learned(tmp_path: Path) -> None:
    task = example("docs/extending.md", "StarsTask")["TASK"]
    reviews = tmp_path / "reviews.tsv"
    reviews.write_text("5\ta superb film\n1\tan awful film\n3\tnothing happens\n4\tquite good\n2\trather dull\n" * 2)
    small = {"feedforward_size": 16, "hidden_size": 16, "first_output_size": 16, "second_output_size": 16}
    small |= {"epochs": 30, "patience": 30, "batch_size": 5, "learning_rate": 0.02, "pool_size": 2}
    small |= {f"{part}_dropout": 0 for part in ("embedding", "feedforward", "integrator")}
    small |= {f"{part}_output_dropout": 0 for part in ("first", "second")}
    result = run_probe(
        task,
        ProbeData(train=[reviews], dev=[reviews]),
        InputOptions(vectors=["random:1:12"]),
        ProbeOptions(seeds=1, settings=small),
    )
    assert result.task == "stars"
    assert result.mean["vectors"] == 100
