package dnf

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker/strategy"
)

// cause is what dnf or rpm prints about one kind of failure.
type cause struct {
	class   message.Class
	printed *regexp.Regexp
	// advice is what a person can do.
	advice string
}

// causes are tried in this order: one failure prints several of these lines, and a lock
// or a full disk is the reason of what is printed after it.
var causes = []cause{
	{message.Lock, regexp.MustCompile(`already locked by \d+|Failed to obtain the transaction lock|can't create transaction lock on`), "wait for the other program, or raise dnf-lock-limit"},
	{message.Space, regexp.MustCompile(`No space left on device|At least \d+[KMG]?i?B more space needed|needs \d+[KMG]?i?B more space on|not enough (free )?disk space|Disk quota exceeded`), "make room on this disk"},
	{message.Artifact, regexp.MustCompile(`GPG check FAILED|you do not have any GPG public keys installed|is not signed|Public key for .* is not (installed|trusted)|does not match .*key|Failed to retrieve GPG key|Key import failed|not correct for this package|BAD signature|[Bb]ad (GPG|OpenPGP|PGP) signature`), "check the key of the repository (gpgkey)"},
	{message.Artifact, regexp.MustCompile(`has incorrect checksum|Some packages have invalid cache|Checksum doesn't match|checksum doesn't match|does not verify|digest.*BAD`), "prepare the host again; check the repository or the cache between it and this host"},
	{message.Repository, regexp.MustCompile(`repomd.xml GPG signature verification error`), "check the key of the repository (gpgkey)"},
	{message.Transient, regexp.MustCompile(`Couldn't connect|Could not resolve|Couldn't resolve host|Curl error \((6|7|28|35|52|55|56)\)|Status code: (408|429|5\d\d) |Timeout was reached|Connection (timed out|refused|reset)|Operation too slow`), "check the network and the repository"},
	{message.Repository, regexp.MustCompile(`Cache-only enabled but no cache|Failed to download metadata for repo|Cannot (download|prepare internal) (repomd|mirrorlist)|Parsing file .* failed|Error: Failed to (synchronize|load) (cache|metadata)|Config error|There are no enabled repositories|no enabled repositories`), "check the repositories in /etc/yum.repos.d, then prepare the host"},
	{message.Repository, regexp.MustCompile(`Cannot find rpm nevra|not available in repositories|Unable to find a match|No match for argument`), "prepare the host again: no repository of this host has it"},
	{message.Install, regexp.MustCompile(`which is not present in the transaction file|is already installed for action|not installed for action`), "the host has changed since it was prepared; prepare it again"},
	{message.Install, regexp.MustCompile(`invalid choice: 'replay'|Incompatible major version`), "this strategy needs dnf 4.4 or later 4 (Red Hat Enterprise Linux 8.4)"},
}

// failure is the error of a dnf or rpm that ended with an exit status other than 0.
func failure(what string, exit int, printed string) error {
	class, advice := classify(printed)
	said := strings.Join(telling(printed), "; ")
	if said == "" {
		said = "it printed no reason"
	}
	if advice != "" {
		advice = "; " + advice
	}
	return strategy.Fail(class, fmt.Errorf("%s: %s (exit status %d)%s", what, text.Fit(said, maxSaid, "..."), exit, advice))
}

// maxSaid bounds what of dnf's output is in an error, in bytes.
const maxSaid = 600

func classify(printed string) (message.Class, string) {
	for _, c := range causes {
		if c.printed.MatchString(printed) {
			return c.class, c.advice
		}
	}
	return message.Install, ""
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
