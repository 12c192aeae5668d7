package apt

import (
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/program"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/remedy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// causes are what apt and dpkg print about failures.
var causes = program.Causes{
	program.Prints(message.Lock, `Could not get lock|Unable to acquire the dpkg frontend lock|Unable to lock (directory|the administration directory)|dpkg (frontend|database) lock was locked by another process`, remedy.WaitOrRaise.With("apt-lock-limit")),
	program.Prints(message.Space, `No space left on device|You don't have enough free space in|not enough free disk space|Disk quota exceeded`, remedy.Room),
	program.Prints(message.Transient, `Sub-process \S+ (exited unexpectedly|received )`, remedy.AptKilled),
	program.Prints(message.Install, `dpkg was interrupted`, remedy.AptInterrupted),
	program.Prints(message.Repository, `NO_PUBKEY|EXPKEYSIG|REVKEYSIG|BADSIG|signatures (couldn't be verified|were invalid)|is not signed`, remedy.AptKey),
	program.Prints(message.Repository, `Release file for .* is (expired|not valid yet)`, remedy.AptExpired),
	program.Prints(message.Repository, `does not have a Release file`, remedy.AptAddress),
	program.Prints(message.Repository, `Malformed (entry|line|stanza)|The list of sources could not be read|Type '.*' is not known on|changed its '.*' value from`, remedy.AptSources),
	program.Prints(message.Repository, `/apt/(lists|osupgrade)/\S+_[\s\S]*package lists or status file could not be parsed`, remedy.AptUnreadable),
	program.Prints(message.Artifact, `Hash Sum mismatch|File has unexpected size|is not a Debian format archive|corrupted filesystem tarball|compressed data is corrupt|unexpected end of file or stream`, remedy.AptDamaged),
	program.Prints(message.Transient, `Could not connect|Could not resolve|Temporary failure resolving|Connection (timed out|refused|failed|reset)|Unable to connect|Failed to fetch .* (408|429|5\d\d) |Mirror sync in progress|Something wicked happened resolving|Undetermined Error`, remedy.Network),
	program.Prints(message.Artifact, `Unable to fetch some archives|Failed to fetch|Some files failed to download`, remedy.AptFetchAgain),
	program.Prints(message.Repository, `Unable to locate package|Version '.*' for '.*' was not found|has no installation candidate`, remedy.AptNoVersion),
	program.Prints(message.Install, `end of file on stdin at conffile prompt`, remedy.AptConffile),
	program.Prints(message.Install, `--fix-broken install`, remedy.AptBroken),
	program.Prints(message.Install, `unmet dependencies|Unmet dependencies|held broken packages|Unable to correct problems`, remedy.AptDependency),
}

// failure is the error of an apt-get or dpkg that ended with an exit status other
// than 0. errors are the lines of pmerror.
func failure(what string, ended program.Ended, pmerrors []string) error {
	return causes.Failure(what, ended, telling(ended.Printed, pmerrors))
}

// maxTold bounds the lines of an error.
const maxTold = 4

// telling returns the lines that tell why apt or dpkg failed: those of dpkg and of
// maintainer scripts before apt's own, which only say that dpkg failed.
func telling(printed string, pmerrors []string) []string {
	var lines []string
	add := func(line string) {
		line = message.CleanText(line)
		if line != "" && !slices.Contains(lines, line) && len(lines) < maxTold {
			lines = append(lines, line)
		}
	}
	all := strings.Split(printed, "\n")
	for i := range all {
		add(errorOfDpkg(all, i))
	}
	for _, line := range pmerrors {
		// apt tells there what it has heard of dpkg.
		if !slices.ContainsFunc(lines, func(known string) bool { return strings.HasPrefix(known, message.CleanText(line)) }) {
			add(line)
		}
	}
	for _, line := range all {
		if strings.HasPrefix(line, " ") && strings.Contains(line, " : Depends: ") {
			add(line)
		}
	}
	for _, line := range all {
		// "Reading package lists..." may be before, in the same line.
		if before, rest, ok := strings.Cut(line, "E: "); ok && (before == "" || strings.HasSuffix(before, "...")) && (len(lines) == 0 || !vague(rest)) {
			add(rest)
		}
	}
	return lines
}

// processing is how dpkg begins to say which package or archive it failed with. The
// reason is in the next line.
var processing = text.Pattern(`^processing (?:package|archive) (\S+) \(-.*\):$`)

// errorOfDpkg returns what dpkg says in a line of all and the next one; empty if it says
// no error there. The words are those of pmerror, "PACKAGE: REASON". When a script failed, what it
// printed before tells more than dpkg does.
func errorOfDpkg(all []string, at int) string {
	// dpkg may have asked a question before, in the same line.
	_, said, ok := strings.Cut(all[at], "dpkg: error")
	if !ok {
		return ""
	}
	said, reason := strings.TrimLeft(said, ": "), ""
	if at+1 < len(all) && strings.HasPrefix(all[at+1], " ") {
		reason = strings.TrimSpace(all[at+1])
	}
	of := processing().FindStringSubmatch(said)
	switch {
	case of == nil && reason == "":
		return said
	case of == nil:
		return strings.TrimRight(said, ": ") + ": " + reason
	case !strings.Contains(reason, "script subprocess"):
		return of[1] + ": " + reason
	}
	if script := printedByScript(all[:at]); len(script) > 0 {
		reason += ", after it printed: " + strings.Join(script, " / ")
	}
	return of[1] + ": " + reason
}

// maxScript is how many of the last lines of a script are told.
const maxScript = 2

// lineOfDpkg begins the lines in which dpkg and apt tell what comes next.
var lineOfDpkg = text.Pattern(`^(Setting up|Unpacking|Preparing to unpack|Selecting previously unselected|Removing|Purging configuration files|Processing triggers for|Installing new version of config file|Configuration file|\(Reading database|Errors were encountered|dpkg: | )`)

// printedByScript returns the last lines that a maintainer script printed, which failed
// after these lines.
func printedByScript(before []string) []string {
	var lines []string
	for _, line := range slices.Backward(before) {
		if lineOfDpkg().MatchString(line) || len(lines) == maxScript {
			break
		}
		if line = message.CleanText(line); line != "" {
			lines = append(lines, line)
		}
	}
	slices.Reverse(lines)
	return lines
}

// vague reports whether a line of apt says no more than that something failed.
func vague(line string) bool {
	return strings.HasPrefix(line, "Sub-process ") || strings.HasPrefix(line, "Some files failed") || strings.HasPrefix(line, "Some index files failed") ||
		strings.HasPrefix(line, "Unable to correct problems")
}
