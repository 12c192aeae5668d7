#!/usr/bin/env bash
# Finds what no linter looks for in every file: marks of unfinished work, and citations
# of what a reader of the repository cannot look up.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "${BASH_SOURCE[0]}")/.."

search() { grep -rI "$@" . --exclude-dir={.git,.cache,.terraform,fuzz} --exclude='go.sum'; }
failed=0

# The brackets keep this file from finding itself; sums are random letters.
if search -nwE 'TOD[O]|FIXM[E]' >&2; then
	echo "do what the marks above promise, or delete them" >&2
	failed=1
fi

# Numbers of requirements, by which comments once gave their reasons.
if search -nwE '(AV|SX|TR|FN|JU)-[0-9]+' >&2; then
	echo "give the reason in words, or name a public document such as an RFC" >&2
	failed=1
fi

# A document that is named is in the repository; the example drift writes body.md itself.
cited=$(search -ohE '\b[A-Za-z0-9_-]+\.md\b' | sort -u)
there=$(find . -name .git -prune -o -name .cache -prune -o -name '*.md' -print -o -name '*.md.tmpl' -print | sed 's|.*/||; s|\.tmpl$||' | sort -u)
for name in $(comm -23 <(echo "$cited" | grep -vx 'body\.md') <(echo "$there")); do
	search -nwF "$name" >&2
	echo "no document of the repository is called $name: give its reason in words, or name a public document" >&2
	failed=1
done
exit $failed
