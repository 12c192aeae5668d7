package v1

import (
	"errors"
	"reflect"
	"testing"
)

// checkDecoded requires that a body gives problems, or else a value that keeps
// its meaning in either format.
func checkDecoded[T any](t *testing.T, contentType string, body []byte, decode func(string, []byte) (T, error)) {
	t.Helper()
	value, err := decode(contentType, body)
	if err != nil {
		if found, ok := errors.AsType[Problems](err); !ok || len(Answer(found).Errors) == 0 {
			t.Fatalf("error without problems: %v", err)
		}
		return
	}
	for _, accept := range []string{inJSON, inYAML} {
		as, encoded, err := Encode(accept, value)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := decode(as, encoded); err != nil || !reflect.DeepEqual(again, value) {
			t.Fatalf("%+v written as\n%s\nread as %+v, %v", value, encoded, again, err)
		}
	}
}

func FuzzOSUpgradeJSON(f *testing.F) {
	f.Fuzz(func(t *testing.T, body []byte) { checkDecoded(t, inJSON, body, DecodeOSUpgrade) })
}

func FuzzOSUpgradeYAML(f *testing.F) {
	f.Fuzz(func(t *testing.T, body []byte) { checkDecoded(t, inYAML, body, DecodeOSUpgrade) })
}

func FuzzStartJSON(f *testing.F) {
	f.Fuzz(func(t *testing.T, body []byte) { checkDecoded(t, inJSON, body, DecodeStart) })
}

func FuzzStartYAML(f *testing.F) {
	f.Fuzz(func(t *testing.T, body []byte) { checkDecoded(t, inYAML, body, DecodeStart) })
}

// checkRollout requires of a rollout that is right that it stays so with its
// defaults and in its canonical form, each of which is the same when done again.
func checkRollout(t *testing.T, contentType string, body []byte) {
	t.Helper()
	checkDecoded(t, contentType, body, DecodeRollout)
	r, err := DecodeRollout(contentType, body)
	if err != nil {
		return
	}
	for name, change := range map[string]func(Rollout) Rollout{"defaults": Rollout.WithDefaults, "canonical": Rollout.Canonical} {
		once := change(r)
		if wrong := once.Validate(); len(wrong) > 0 {
			t.Fatalf("%s of %+v: %v", name, r, wrong)
		}
		if !reflect.DeepEqual(change(once), once) {
			t.Fatalf("%s of %+v, twice: %+v; once: %+v", name, r, change(once), once)
		}
	}
}

func FuzzRolloutJSON(f *testing.F) {
	f.Fuzz(func(t *testing.T, body []byte) { checkRollout(t, inJSON, body) })
}

func FuzzRolloutYAML(f *testing.F) {
	f.Fuzz(func(t *testing.T, body []byte) { checkRollout(t, inYAML, body) })
}

// checkCalendar requires of a calendar that is right that it stays so in its
// canonical form, which is the same when done again.
func checkCalendar(t *testing.T, contentType string, body []byte) {
	t.Helper()
	checkDecoded(t, contentType, body, DecodeCalendar)
	c, err := DecodeCalendar(contentType, body)
	if err != nil {
		return
	}
	once := c.Canonical()
	if wrong := once.Validate(); len(wrong) > 0 {
		t.Fatalf("canonical of %+v: %v", c, wrong)
	}
	if !reflect.DeepEqual(once.Canonical(), once) || !SameCalendar(c, once) {
		t.Fatalf("canonical of %+v, twice: %+v; once: %+v", c, once.Canonical(), once)
	}
}

func FuzzCalendarJSON(f *testing.F) {
	f.Add([]byte(calendarJSON))
	f.Add([]byte(`{"kind":"freeze","ics":"BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nDTSTART;VALUE=DATE:20261224\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"}`))
	f.Fuzz(func(t *testing.T, body []byte) { checkCalendar(t, inJSON, body) })
}

func FuzzCalendarYAML(f *testing.F) {
	f.Add([]byte("kind: allow\nevents:\n- start: 2026-12-24T18:00\n  duration: 90m\n  rdate: [2027-01-01T10:30]\n"))
	f.Fuzz(func(t *testing.T, body []byte) { checkCalendar(t, inYAML, body) })
}

func FuzzAskJSON(f *testing.F) {
	f.Fuzz(func(t *testing.T, what string, body []byte) {
		checkDecoded(t, inJSON, body, func(contentType string, body []byte) (Ask, error) { return DecodeAsk(what, contentType, body) })
	})
}

func FuzzPreferred(f *testing.F) {
	f.Fuzz(func(t *testing.T, accept string) {
		if _, _, err := Encode(accept, Start{Reason: accept}); err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeStart(preferred(accept), []byte("{}")); err != nil {
			t.Fatalf("the content type for %q cannot be read: %v", accept, err)
		}
	})
}
