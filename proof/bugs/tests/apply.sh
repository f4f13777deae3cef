#!/usr/bin/env bash
# Every planted bug still fits the sources: its header is complete, and its patch applies without fuzz.
# HF_SOURCE: the folder of the sources.
set -eu
exec bash "${HF_SOURCE:?HF_SOURCE names no folder}/proof/bugs/bugs.sh" --apply
