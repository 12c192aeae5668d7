package cli

import (
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestUnknownCalendar checks that the error about a calendar that is not there says which ones
// there are, or how to declare one, and that one without a URL is called so.
func TestUnknownCalendar(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	refused := func(name, want string) {
		t.Helper()
		code, _, stderr := call(t, as(t, s.URL, s.Token, "acme", "calendar", "refresh", name)...)
		if code != exitFailed || !strings.Contains(stderr, want) || strings.Contains(stderr, "PUT") {
			t.Errorf("calendar refresh %s ends with %d and prints %s", name, code, stderr)
		}
	}
	refused("nope", `tenant "acme" has no calendar nope; the site fetches none for it; to declare one with a url: osupgrade-agent apply -f FILE`)
	s.SetCalendar("acme", "own", v1.Calendar{Kind: "freeze"})
	s.SetCalendar("acme", "winter", v1.Calendar{Kind: "freeze", URL: "https://calendars.example/winter.ics"})
	s.SetCalendar("acme", "summer", v1.Calendar{Kind: "allow", URL: "https://calendars.example/summer.ics"})
	refused("nope", `tenant "acme" has no calendar nope; the site fetches summer, winter`)
	refused("own", `calendar own of tenant "acme" has no url, so the site does not fetch it`)
}
