package api

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestStreamOfEnvironments checks which runs of several environments a client is told of: those
// under way, those that begin later, the end of each, and of those that had ended only the newest;
// and that the hosts of each run are kept apart.
func TestStreamOfEnvironments(t *testing.T) {
	t.Parallel()
	run := func(id uint64, environment, phase string, hosts ...string) *v1.Run {
		r := &v1.Run{ID: id, Environment: environment, Phase: phase, Hosts: []v1.RunHost{}}
		for i := 0; i < len(hosts); i += 2 {
			r.Hosts = append(r.Hosts, v1.RunHost{Hostname: hosts[i], Status: hosts[i+1]})
		}
		return r
	}
	controller := &scripted{}
	to := page{httptest.NewRecorder()}
	st := &stream{
		call: &call{Request: httptest.NewRequest("GET", "/", http.NoBody), w: to, controller: controller}, out: http.NewResponseController(to), changes: true,
	}
	idle := v1.Situation{Status: "idle", Environments: 3}
	for _, row := range []struct {
		what  string
		shown v1.Snapshot
		want  string
	}{
		{
			"at first",
			v1.Snapshot{Situation: idle, Others: []*v1.Run{
				run(9, "chur", "finished", "c1", "upgraded"), run(7, "bern", "upgrading", "b1", "prepared"), run(5, "basel", "upgrading", "a1", "prepared"), run(3, "aarau", "finished", "x1", "failed"),
			}},
			"[situation run c1=upgraded run b1=prepared run a1=prepared]",
		},
		{
			"a host of each",
			v1.Snapshot{Situation: idle, Others: []*v1.Run{
				run(9, "chur", "finished", "c1", "upgraded"), run(7, "bern", "upgrading", "b1", "upgrading"), run(5, "basel", "upgrading", "a1", "upgrading"), run(3, "aarau", "finished", "x1", "failed"),
			}},
			"[changes b1=upgrading changes a1=upgrading]",
		},
		{
			"one ends, one begins",
			v1.Snapshot{Situation: idle, Run: run(12, "", "preparing", "d1", "preparing"), Others: []*v1.Run{
				run(9, "chur", "finished", "c1", "upgraded"), run(7, "bern", "upgrading", "b1", "upgrading"), run(5, "basel", "finished", "a1", "upgraded"), run(3, "aarau", "finished", "x1", "failed"),
			}},
			"[changes a1=upgraded run d1=preparing]",
		},
		{
			"one has begun and ended",
			v1.Snapshot{Situation: idle, Run: run(12, "", "preparing", "d1", "preparing"), Others: []*v1.Run{
				run(15, "aarau", "finished", "x1", "upgraded"), run(9, "chur", "finished", "c1", "upgraded"), run(7, "bern", "upgrading", "b1", "upgrading"), run(5, "basel", "finished", "a1", "upgraded"),
			}},
			"[run x1=upgraded]",
		},
	} {
		controller.shown = row.shown
		if err := st.send(); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(heard(t, to)); got != row.want {
			t.Errorf("%s: sent is %s, not %s", row.what, got, row.want)
		}
	}
}
