"""``python -m wardround.records.demo``: write the shipped records anew after a change of the table."""

from .cases import RECORDS_FILE, shipped_lines

if __name__ == "__main__":
    RECORDS_FILE.write_text("\n".join(shipped_lines()) + "\n", "utf-8")
