#!/bin/sh
# Installs into .venv, made when it is not there, what is given as pip arguments: scripts/install.sh -e '.[local,cli]'
set -eu
venv=.venv
bin=$venv/bin

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
    for candidate in "${PYTHON:-python3}" python3.14 python3.13 python3.12 python3.11; do
        if new_enough "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    echo "toolcrib needs Python 3.11 or newer, and '${PYTHON:-python3}' is $("${PYTHON:-python3}" --version 2>&1 || true)." >&2
    echo "Install a newer one, or say where it is: make demo PYTHON=/path/to/python3.13" >&2
    exit 1
}

# A venv whose making broke off has an interpreter but no pip, so pip is what tells whether it is whole.
if ! { new_enough $bin/python && $bin/python -m pip --version >/dev/null 2>&1; }; then
    python=$(find_python)
    echo "making $venv with $("$python" --version)"
    "$python" -m venv --clear $venv
fi

# uv is many times faster but does not read pip's configuration, so where pip has an index of its own, pip is asked.
if ! $bin/python -m pip config list | grep '\.index-url=' >/dev/null && $bin/python -m pip install --quiet uv; then
    if $bin/uv pip install --quiet --python $bin/python "$@"; then
        exit 0
    fi
    echo "uv could not install; trying pip" >&2
fi
$bin/python -m pip install --quiet --upgrade 'pip>=25.1' # older ones do not know --group
$bin/python -m pip install --quiet "$@"
