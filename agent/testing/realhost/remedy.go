package realhost

import (
	"regexp"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/remedy"
)

// Remedy fails the test unless the product has printed the remedy, and returns the commands that
// it tells, as they were printed; empty if it tells none. [Follow] carries them out.
func Remedy(t testing.TB, r remedy.Remedy, printed string) (commands string) {
	t.Helper()
	// What is filled in ends with the message: nothing of a command has one of these characters.
	pattern := verb.ReplaceAllString(regexp.QuoteMeta(string(r)), `[^;"\n\\]+`)
	if strings.HasSuffix(string(r), "run: %s") {
		pattern = strings.TrimSuffix(pattern, `[^;"\n\\]+`) + `[^"\n\\]+`
	}
	found := regexp.MustCompile(pattern).FindString(printed)
	if found == "" {
		t.Fatalf("it does not say %q:\n%s", r, printed)
	}
	_, commands, _ = strings.Cut(found, "run: ")
	return commands
}

// verb is one of fmt, after regexp.QuoteMeta.
var verb = regexp.MustCompile(`%(\\\[1\\\])?s`)

// Follow carries out the commands of a remedy as a person does who has no terminal, and answers yes
// to the package managers.
func Follow(t testing.TB, m Machine, r remedy.Remedy, printed string) {
	t.Helper()
	commands := Remedy(t, r, printed)
	if commands == "" {
		t.Fatalf("%q tells no command", r)
	}
	commands = strings.NewReplacer("apt-get ", "apt-get -q -y ", "dnf ", "dnf -q -y ", "dnf5 ", "dnf5 -q -y ").Replace(commands)
	t.Logf("it is followed: %s", commands)
	m.Must("export DEBIAN_FRONTEND=noninteractive; " + commands)
}
