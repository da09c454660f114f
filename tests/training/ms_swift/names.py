"""What the tests of the plugin need to know of the version of ms-swift."""

import inspect

from swift.dataset import RowPreprocessor, loader

NOTES_DATASET = hasattr(loader, "_inject_dataset_routing_tag")  # each row says where it is from
MAP_COLUMNS = (  # renames columns such as `target` to ms-swift's own names
    {"enable_auto_mapping": True}
    if "enable_auto_mapping" in inspect.signature(RowPreprocessor.__call__).parameters
    else {}
)


def without_nulls(messages):
    """Before 4.2 ms-swift adds a field `loss`, which is null, to each message."""
    return [
        {key: value for key, value in message.items() if value is not None} for message in messages
    ]
