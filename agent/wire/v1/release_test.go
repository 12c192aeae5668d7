package v1

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

func TestStamped(t *testing.T) {
	t.Parallel()
	early, late := time.Date(2026, 11, 27, 8, 0, 0, 0, time.UTC), time.Date(2026, 11, 28, 8, 0, 0, 500, time.UTC)
	bad := release.Withdrawn{Reason: "loses routes", At: early, By: "ann"}
	forged := release.Withdrawn{Reason: "loses routes", At: late.Add(time.Hour), By: "eve"}
	worse := release.Withdrawn{Reason: "loses data", By: "eve"}
	for name, row := range map[string]struct{ before, after, want *release.Withdrawn }{
		"not withdrawn":            {nil, nil, nil},
		"withdrawn":                {nil, &forged, &release.Withdrawn{Reason: "loses routes", At: late.Truncate(time.Second), By: "bob"}},
		"withdrawn for that":       {&bad, &forged, &bad},
		"withdrawn for more":       {&bad, &worse, &release.Withdrawn{Reason: "loses data", At: late.Truncate(time.Second), By: "bob"}},
		"may be installed again":   {&bad, nil, nil},
		"written back as it was":   {&bad, &bad, &bad},
		"withdrawn without a name": {nil, &worse, &release.Withdrawn{Reason: "loses data", At: late.Truncate(time.Second), By: "bob"}},
	} {
		got := Stamped(Release{Withdrawn: row.before}, Release{Withdrawn: row.after}, late, "bob").Withdrawn
		if (got == nil) != (row.want == nil) || got != nil && *got != *row.want {
			t.Errorf("%s: got %+v, want %+v", name, got, row.want)
		}
	}
	if worse.By != "eve" {
		t.Error("the value of the client has changed")
	}
}

func TestSameRelease(t *testing.T) {
	t.Parallel()
	one := Release{Description: "nov", Data: json.RawMessage(`{"a":1,"b":2}`), Withdrawn: &release.Withdrawn{Reason: "bad", By: "ann"}}
	for name, row := range map[string]struct {
		change func(*Release)
		same   bool
	}{
		"nothing":         {func(*Release) {}, true},
		"spelling":        {func(r *Release) { r.Component, r.Data = "os", json.RawMessage(`{ "b": 2, "a": 1 }`) }, true},
		"who withdrew it": {func(r *Release) { r.Withdrawn = &release.Withdrawn{Reason: "bad"} }, true},
		"why":             {func(r *Release) { r.Withdrawn = &release.Withdrawn{Reason: "worse"} }, false},
		"not withdrawn":   {func(r *Release) { r.Withdrawn = nil }, false},
		"description":     {func(r *Release) { r.Description = "dec" }, false},
		"data":            {func(r *Release) { r.Data = json.RawMessage(`{"a":2}`) }, false},
	} {
		other := one
		row.change(&other)
		if got := SameRelease(one, other); got != row.same {
			t.Errorf("%s: the same: %v", name, got)
		}
	}
}
