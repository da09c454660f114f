"""Two nodes, which are two launches on this machine: the second is there long before the first."""

import pytest

pytestmark = pytest.mark.e2e


def test_the_second_node_waits_for_the_first(mixed):
    assert [row["global_step/max_steps"] for row in mixed.steps()] == ["1/3", "2/3", "3/3"]


def test_the_second_node_shows_the_steps_and_has_a_log_of_its_own(mixed):
    """The folder of the run is shared."""
    assert "step 3/3" in mixed.text_of_second_node
    assert (mixed.output / "trainer-node1.log").exists()
