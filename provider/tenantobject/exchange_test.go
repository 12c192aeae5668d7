package tenantobject

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestRoomy: a creation for which there is no room waits for a deletion of the same process, as
// long as that takes, and fails if there is none.
func TestRoomy(t *testing.T) {
	t.Parallel()
	noRoom := &client.Error{Status: http.StatusBadRequest, Errors: []v1.Error{{Info: v1.ErrorInfo{Full: true}}}}
	for name, c := range map[string]struct {
		// deletions are how long each takes. The first begins soon, each other one after the end
		// of the one before.
		deletions []time.Duration
		// room is how many of them it takes.
		room  int
		fails bool
	}{
		"there is room":                {},
		"no deletion":                  {room: 1, fails: true},
		"a slow deletion makes room":   {deletions: []time.Duration{time.Minute}, room: 1},
		"the second one makes room":    {deletions: []time.Duration{time.Second, time.Minute}, room: 2},
		"the deletions are not enough": {deletions: []time.Duration{time.Second, time.Minute}, room: 3, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				shared, ended := newRemovals(), 0
				go func() {
					for _, takes := range c.deletions {
						time.Sleep(begins / 2)
						end := shared.begin()
						time.Sleep(takes)
						ended++
						end()
					}
				}()
				_, err := roomy(t.Context(), shared, func(context.Context) (found[note], error) {
					synctest.Wait()
					if ended < c.room {
						return found[note]{}, noRoom
					}
					return found[note]{}, nil
				})
				if failed := err != nil; failed != c.fails {
					t.Errorf("it ends with %v", err)
				}
			})
		})
	}
}
