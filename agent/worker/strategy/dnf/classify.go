package dnf

import (
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker/strategy/program"
)

// causes are what dnf and rpm print about failures.
var causes = program.Causes{
	program.Prints(message.Lock, `already locked by \d+|Failed to obtain the transaction lock|can't create transaction lock on`, "wait for the other program, or raise dnf-lock-limit"),
	program.Prints(message.Space, `No space left on device|At least \d+[KMG]?i?B more space needed|needs \d+[KMG]?i?B more space on|not enough (free )?disk space|Disk quota exceeded`, "make room on this disk"),
	program.Prints(message.Artifact, `GPG check FAILED|you do not have any GPG public keys installed|is not signed|Public key for .* is not (installed|trusted)|does not match .*key|Failed to retrieve GPG key|Key import failed|not correct for this package|BAD signature|[Bb]ad (GPG|OpenPGP|PGP) signature`, "check the key of the repository (gpgkey)"),
	program.Prints(message.Artifact, `has incorrect checksum|Some packages have invalid cache|Checksum doesn't match|checksum doesn't match|does not verify|digest.*BAD`, "prepare the host again; check the repository or the cache between it and this host"),
	program.Prints(message.Repository, `repomd.xml GPG signature verification error`, "check the key of the repository (gpgkey)"),
	program.Prints(message.Transient, `Couldn't connect|Could not resolve|Couldn't resolve host|Curl error \((6|7|28|35|52|55|56)\)|Status code: (408|429|5\d\d) |Timeout was reached|Connection (timed out|refused|reset)|Operation too slow`, "check the network and the repository"),
	program.Prints(message.Repository, `Cache-only enabled but no cache|Failed to download metadata for repo|Cannot (download|prepare internal) (repomd|mirrorlist)|Parsing file .* failed|Error: Failed to (synchronize|load) (cache|metadata)|Config error|There are no enabled repositories|no enabled repositories`, "check the repositories in /etc/yum.repos.d, then prepare the host"),
	program.Prints(message.Repository, `Cannot find rpm nevra|not available in repositories|Unable to find a match|No match for argument`, "prepare the host again: no repository of this host has it"),
	program.Prints(message.Install, `which is not present in the transaction file|is already installed for action|not installed for action`, "the host has changed since it was prepared; prepare it again"),
	program.Prints(message.Install, `invalid choice: 'replay'|Incompatible major version`, "this strategy needs dnf 4.4 or later 4 (Red Hat Enterprise Linux 8.4)"),
}

// failure is the error of a dnf or rpm that ended with an exit status other than 0.
func failure(what string, is program.Ended) error {
	return causes.Failure(what, is, telling(is.Printed))
}

// telling returns the lines that tell why dnf failed: those after "Error:", and what
// rpm says about a package or a script.
func telling(printed string) (lines []string) {
	inError := false
	for line := range strings.Lines(printed) {
		plain := message.CleanText(strings.TrimSpace(line))
		rest, isError := strings.CutPrefix(plain, "Error: ")
		switch {
		case isError, plain == "Error:":
			inError, plain = true, strings.TrimPrefix(rest, "Error:")
		case strings.HasPrefix(plain, "Problem repository: "), strings.HasPrefix(plain, "However, you do not have any GPG public keys"):
		case strings.HasPrefix(plain, "error: ") || strings.HasPrefix(plain, "warning: %") || strings.HasPrefix(plain, "Error in ") || strings.HasPrefix(plain, "Errors during"):
		case inError && strings.HasPrefix(line, " "):
		default:
			inError = false
			continue
		}
		if plain != "" && !slices.Contains(lines, plain) && len(lines) < 5 {
			lines = append(lines, plain)
		}
	}
	return lines
}
