#!/usr/bin/env bash
# Runs a command with a Terraform or OpenTofu CLI and without anything of the
# caller's that would change the result:
#
#   tools/cli.sh COMMAND [ARGUMENT...]
#
# The command finds the CLI in TF_ACC_TERRAFORM_PATH: the caller's own choice,
# else terraform of PATH, else tofu.
set -euo pipefail

wanted=${TF_ACC_TERRAFORM_PATH:-}
cli=$(if [[ $wanted ]]; then command -v "$wanted"; else command -v terraform || command -v tofu; fi) || {
	if [[ $wanted ]]; then
		echo "TF_ACC_TERRAFORM_PATH: $wanted is not a program; name a Terraform or OpenTofu CLI." >&2
	else
		echo "cannot find a Terraform or OpenTofu CLI: neither terraform nor tofu is on PATH." >&2
	fi
	cat >&2 <<-TEXT
		To get one: https://developer.hashicorp.com/terraform/install
		or https://opentofu.org/docs/intro/install. Then put it on PATH.
	TEXT
	exit 1
}
cli=$(realpath "$cli")

# A dev.env that was sourced, a log level or a plugin cache must not reach the
# tests; neither must a CLI configuration, which may name a file that is gone.
for name in $(compgen -e); do
	case $name in TF_* | OSUPGRADE_*) unset "$name" ;; esac
done
export TF_CLI_CONFIG_FILE=/dev/null
export TF_ACC=1 TF_ACC_TERRAFORM_PATH="$cli" TF_IN_AUTOMATION=1
export CHECKPOINT_DISABLE=1

exec "$@" </dev/null
