package dnf

import (
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/program"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/remedy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// causes are what dnf 4, dnf5 and rpm print about failures.
var causes = program.Causes{
	program.Prints(message.Lock, `already locked by \d+|Failed to obtain the transaction lock|Failed to obtain rpm transaction lock|`+
		`can't create transaction lock on`,
		remedy.WaitOrRaise.With("dnf-lock-limit")),
	program.Prints(message.Space, `No space left on device|At least \d+[KMG]?i?B more space needed|needs \d+[KMG]?i?B more space on|`+
		`not enough (free )?disk space|Disk quota exceeded|Failed writing received data to disk`,
		remedy.Room),
	program.Prints(message.Artifact, `GPG check FAILED|you do not have any GPG public keys installed|is not signed|`+
		`Public key for .* is not (installed|trusted)|does not match .*key|Failed to retrieve GPG key|`+
		`Key import failed|not correct for this package|BAD signature|[Bb]ad (GPG|OpenPGP|PGP) signature|`+
		`OpenPGP check for package .* has failed|Transaction failed: Signature verification failed`,
		remedy.DNFKey),
	program.Prints(message.Artifact, `has incorrect checksum|Some packages have invalid cache|cacheonly option is activated|Checksum doesn't match|`+
		`checksum doesn't match|does not verify|digest.*BAD`,
		remedy.DNFDamaged),
	program.Prints(message.Repository, `repomd.xml GPG signature verification error`, remedy.DNFKey),
	program.Prints(message.Transient, `Couldn't connect|Could not resolve|Couldn't resolve host|Curl error \((6|7|28|35|52|55|56)\)|`+
		`Status code: (408|429|5\d\d) |Timeout was reached|Connection (timed out|refused|reset)|Operation too slow`,
		remedy.Network),
	program.Prints(message.Repository, `Cache-only enabled but no cache|Failed to download metadata|Usable URL not found|No matching repositories for|`+
		`Cannot (download|prepare internal) (repomd|mirrorlist)|Parsing file .* failed|`+
		`Error: Failed to (synchronize|load) (cache|metadata)|Config error|There are no enabled repositories|`+
		`no enabled repositories`,
		remedy.DNFRepositories),
	program.Prints(message.Repository, `Cannot find rpm nevra|Cannot perform Install action, no match for|not available in repositories|`+
		`Unable to find a match|No match for argument`,
		remedy.DNFNoVersion),
	program.Prints(message.Install, `which is not present in the (stored )?transaction|Cannot perform Remove action, no match for|`+
		`is already installed for action|not installed for action`,
		remedy.DNFChanged),
	program.Prints(message.Install, `none of the providers can be installed|nothing provides `, remedy.DNFDependency),
	program.Prints(message.Install, `invalid choice: 'replay'|Unknown argument "replay"|Incompatible major version`,
		remedy.DNFTooOld),
}

// failure is the error of a dnf or rpm that ended with an exit status other than 0.
func (g *generation) failure(what string, ended program.Ended) error {
	return causes.Failure(what, ended, g.said(ended.Printed))
}

// said returns the first lines that tell why dnf failed.
func (g *generation) said(printed string) (lines []string) {
	inError := false
	for line := range strings.Lines(printed) {
		var said string
		said, inError = g.telling(line, inError)
		if said != "" && !slices.Contains(lines, said) && len(lines) < 5 {
			lines = append(lines, said)
		}
	}
	return lines
}
