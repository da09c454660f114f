"""Looks up every target of the patch tables in the installed packages; the last line is JSON."""

import json
from pkgutil import resolve_name

from swift_rlvr.training.ms_swift.table import TABLES, Table


def main() -> None:
    """Print one line, of JSON."""
    counts, missing = {}, []
    for device, table in TABLES.items():
        targets = _targets(table)
        counts[device] = len(targets)
        for target in sorted(targets):
            try:
                resolve_name(target)
            except (ImportError, AttributeError) as error:
                missing.append(f"{device}: {target} ({error})")
    found = " and ".join(f"{count} for {device}" for device, count in counts.items())
    text = f"{found}; {'missing: ' + '; '.join(missing) if missing else 'all are there'}"
    print(json.dumps({"passed": not missing, "text": text, "targets": counts, "missing": missing}))


def _targets(table: Table) -> set[str]:
    patches = (*table.torchrun, *table.server, *table.trainer, *table.colocated)
    # As pkgutil reads it: module:Class.attribute.
    return {patch.target for patch in patches}


if __name__ == "__main__":
    main()
