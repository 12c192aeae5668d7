package api

import (
	"context"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
)

// skippable is a controller with environments that have a window tomorrow and the day after.
type skippable struct {
	memory
	opens time.Time
}

func (s *skippable) Skippable(_ context.Context, environment string, start time.Time) (opens, closes time.Time, err error) {
	second := s.opens.Add(24 * time.Hour)
	switch {
	case environment != "basel" && environment != "default":
		return opens, closes, &run.NoEnvironment{Name: environment, Known: []string{"basel", "default"}}
	case start.IsZero() || start.Equal(s.opens):
		return s.opens, s.opens.Add(time.Hour), nil
	case start.Equal(second):
		return second, second.Add(time.Hour), nil
	}
	return opens, closes, &run.Refused{Message: "no window opens then"}
}

// TestSkipWindow skips windows of two environments, once each, and lets them open their runs again; an
// object that cannot be read is replaced.
func TestSkipWindow(t *testing.T) {
	t.Parallel()
	opens := time.Now().UTC().Truncate(time.Hour).Add(24 * time.Hour)
	m := &skippable{opens: opens}
	s := serve(t, m, access.Reads, access.Starts)
	const path = acmeState + "/skip-window"
	second := opens.Add(24 * time.Hour).Format(time.RFC3339)
	s.want("DELETE", path, "", 412, "no window of environment default is skipped")
	s.want("POST", path, `{"reason":"sale"}`, 200, `{"start":"`+opens.Format(time.RFC3339)+`"`)
	s.want("POST", path, `{"reason":"another","environment":"default"}`, 200, `"by":"test","at":"`)
	s.want("POST", path, `{"reason":"another"}`, 200, `"reason":"sale"`)
	s.want("POST", path, `{"reason":"sale","window-start":"`+second+`"}`, 200, `{"start":"`+second+`"`)
	s.want("DELETE", path+"?environment=basel", "", 412, "no window of environment basel is skipped")
	s.want("POST", path, `{"reason":"sale","environment":"basel"}`, 200, `"reason":"sale"`)
	if len(m.seen) != 3 {
		t.Errorf("the controller was waited for %d times, want 3: nothing is written for a window that is skipped already", len(m.seen))
	}
	s.want("DELETE", path+"?window-start="+second, "", 204, "")
	s.want("DELETE", path+"?window-start="+second, "", 412, `"field":"window-start"`)
	s.want("DELETE", path, "", 204, "")
	if basel, _, err := m.intent.Skips(t.Context(), "acme", "basel"); err != nil || len(basel.Windows) != 1 {
		t.Errorf("basel has the skips %+v, %v", basel, err)
	}
	m.intent.Damage("acme", store.Object{Kind: store.Skip, Name: "basel"})
	s.want("POST", path, `{"reason":"anew","environment":"basel"}`, 200, `"reason":"anew"`)
	s.want("DELETE", path+"?environment=basel", "", 204, "")
}

// TestWrongSkipWindow checks that wrong requests are refused with the field and the value, and that
// nothing is written.
func TestWrongSkipWindow(t *testing.T) {
	t.Parallel()
	m := &skippable{}
	s := serve(t, m, access.Reads, access.Starts)
	const path = acmeState + "/skip-window"
	for body, part := range map[string]string{
		`{}`:                                     `"field":"reason"`,
		`{"reason":" "}`:                         "is empty; it is shown with the window",
		`{"reason":"x","window-start":"Sunday"}`: `"field":"window-start","value":"Sunday"`,
		`{"reason":"x","environment":"B a"}`:     "is not the name of an environment",
		`{"reason":"x","window":"2026-11-29T01:00:00Z"}`: "window: unknown key",
		`{"reason":"x"`: "",
	} {
		s.want("POST", path, body, 400, part)
	}
	s.want("POST", path, `{"reason":"x","environment":"chur"}`, 404, "there is no environment chur; there are: basel")
	s.want("POST", path, `{"reason":"x","window-start":"2026-11-29T01:00:00Z"}`, 412, "no window opens then")
	s.want("DELETE", path+"?environment=B%20", "", 400, "is not the name of an environment")
	s.want("DELETE", path+"?window-start=Sunday", "", 400, `"field":"window-start","value":"Sunday"`)
	s.want("DELETE", path+"?window=x", "", 400, "is not a query parameter here")
	if len(m.seen) != 0 {
		t.Error("something was written")
	}
	serve(t, &skippable{}, access.Reads, access.Writes).want("POST", path, `{"reason":"x"}`, 403, "does not have the right")
}
