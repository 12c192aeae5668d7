package exec

import (
	"bytes"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// FuzzParsePrinted checks that what a script prints, and what a worker asks, is read as
// something that can be told, or refused.
func FuzzParsePrinted(f *testing.F) {
	f.Add([]byte(`{"running":"1.1","failed":"1.2"}`))
	f.Add([]byte(`{"changes":[{"name":"kernel","from":"6.1.0","to":"6.1.1"}],"download":7}`))
	f.Add([]byte(`{"format":1,"action":"prepare"}`))
	f.Fuzz(func(t *testing.T, printed []byte) {
		if b, err := parseBoot(printed); err == nil {
			for _, version := range []string{b.Running, b.Failed} {
				if version != message.CleanText(version) || len(version) > message.MaxPlanName {
					t.Errorf("version %q is let through", version)
				}
			}
		}
		if plan, err := parsePlan(printed); err == nil {
			if err := plan.Check(); err != nil {
				t.Errorf("%s is read as %+v: %v", printed, plan, err)
			}
		}
		if missing, err := parseMissing(printed); err == nil {
			for _, change := range missing {
				if change.Name == "" {
					t.Errorf("a change without a name in %s", printed)
				}
			}
		}
		_, _ = readRequest(bytes.NewReader(printed))
	})
}
