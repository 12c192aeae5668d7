#!/usr/bin/env bash
# Prints a CLI configuration that takes our provider from a folder, so that no
# registry is asked:
#
#   tools/dev-overrides.sh FOLDER
set -euo pipefail

cat <<TEXT
provider_installation {
  dev_overrides {
    "osupgrade/osupgrade" = "$1"
  }
  direct {}
}
TEXT
