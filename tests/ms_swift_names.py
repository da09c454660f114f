"""Where ms-swift 4 and 3.12 keep what the tests of the plugin use, and what differs in the rows that they make."""

import inspect

from swift_rlvr.training.compat import V3, DatasetSyntax, RowPreprocessor, orms

if V3:
    from swift.llm import RLHFArguments
    from swift.llm.dataset import DATASET_MAPPING, load_dataset, loader
else:
    from swift.arguments import RLHFArguments
    from swift.dataset import DATASET_MAPPING, load_dataset, loader

__all__ = ["DATASET_MAPPING", "DatasetSyntax", "RLHFArguments", "load_dataset", "orms"]

NOTES_DATASET = hasattr(loader, "_inject_dataset_routing_tag")  # each row says where it is from
MAP_COLUMNS = (  # renames columns such as `target` to ms-swift's own names
    {"enable_auto_mapping": True}
    if "enable_auto_mapping" in inspect.signature(RowPreprocessor.__call__).parameters
    else {}
)


def without_nulls(messages):
    """Before 4.2 ms-swift adds a field `loss`, which is null, to each message."""
    return [{key: value for key, value in message.items() if value is not None} for message in messages]
