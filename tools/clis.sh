#!/usr/bin/env bash
# Tests the provider with each Terraform and OpenTofu that is on PATH, and says which of
# the versions that it supports are not:
#
#   tools/clis.sh           tests with those that are there
#   tools/clis.sh all       also fails if one of them is not
#   tools/clis.sh note      has the tests note from now on for which the CLI lacks something
#   tools/clis.sh skipped   names those, if there are any
#
# A program counts by its version, not by its name: terraform, tofu, terraform-1.11,
# tofu1.10 and the like are all asked for it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

skipped=.cache/cli/skipped # provider/acctest/feature.go appends to it.
case ${1-} in
note)
	mkdir -p "$(dirname "$skipped")"
	: >"$skipped"
	exit
	;;
skipped)
	[[ -s $skipped ]] || exit 0
	echo "NOT TESTED: these tests need more than the Terraform or OpenTofu CLI of this machine has:"
	sed 's/^/  /' "$skipped"
	exit
	;;
esac

# The oldest that is supported and the newest that is known, of both.
wanted=("Terraform 1.11" "Terraform 1.15" "OpenTofu 1.10" "OpenTofu 1.12")

# What depends on the CLI: each kind of resource from creation to deletion, imports,
# functions, states of earlier releases, modules and their tests, the mirror.
tests='^(TestUpgrade|TestExamples.*|TestGuides_run|TestAgent.*|TestBinary.*|TestModules|TestPolicy|Test.*CLI)$'

declare -A found=()
failed=()
while IFS= read -r program; do
	version=$(CHECKPOINT_DISABLE=1 TF_CLI_CONFIG_FILE=/dev/null "$program" version 2>/dev/null |
		sed -n '1s/^\(Terraform\|OpenTofu\) v\([0-9]*\.[0-9]*\).*/\1 \2/p') || true
	[[ $version && ! ${found[$version]-} ]] || continue
	found[$version]=$program
	echo "$version ($program):"
	TF_ACC_TERRAFORM_PATH=$program tools/cli.sh go test -count=1 -run "$tests" ./provider ./examples || failed+=("$version")
done < <(IFS=:; for folder in $PATH; do
	for program in "$folder"/terraform* "$folder"/tofu*; do
		[[ ! -x $program || -d $program || $program == *terraform-provider-* ]] || echo "$program"
	done
done)

missing=()
for version in "${wanted[@]}"; do
	[[ ${found[$version]-} ]] || missing+=("$version")
done
if ((${#missing[@]})); then
	echo >&2
	printf 'NOT TESTED, because it is not on PATH: %s\n' "${missing[@]}" >&2
	echo "To test it, put it on PATH under a name of its own, such as terraform-1.15." >&2
fi
if ((${#failed[@]})); then
	echo >&2
	printf 'FAILED: %s\n' "${failed[@]}" >&2
	exit 1
fi
[[ ${1-} != all || ${#missing[@]} == 0 ]]
