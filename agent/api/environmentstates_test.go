package api

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

const environmentStatesPath = "/v1/state/tenants/acme/os-upgrade/environments"

// shopkeeper is a controller with three environments.
type shopkeeper struct{ memory }

func (*shopkeeper) EnvironmentStatuses(context.Context) ([]v1.EnvironmentStatus, error) {
	return []v1.EnvironmentStatus{
		{Name: "basel", Status: "waiting", Hosts: 6, Needs: []string{"approval"}, Run: &v1.Run{ID: 7, Environment: "basel", Hosts: []v1.RunHost{}}},
		{Name: "bern", Status: "idle", Hosts: 4},
		{Name: "default", Status: "idle"},
	}, nil
}

func (k *shopkeeper) EnvironmentStatus(ctx context.Context, name string) (v1.EnvironmentStatus, error) {
	all, err := k.EnvironmentStatuses(ctx)
	for _, e := range all {
		if e.Name == name {
			return e, err
		}
	}
	return v1.EnvironmentStatus{}, &run.NoEnvironment{Name: name, Known: []string{"basel", "bern", "default"}}
}

// TestEnvironmentStates checks what is answered of all environments, of one, of a page and of
// some fields, and to wrong requests.
func TestEnvironmentStates(t *testing.T) {
	t.Parallel()
	s := serve(t, &shopkeeper{}, access.Reads)
	const path = environmentStatesPath
	s.want("GET", path+"?keys=true", "", 200, `["basel","bern","default"]`)
	s.want("GET", path+"?count=true", "", 200, "3")
	s.want("GET", path+"?fields=name,needs", "", 200, `[{"name":"basel","needs":["approval"]},{"name":"bern"},{"name":"default"}]`)
	s.want("GET", path+"/bern", "", 200, `{"name":"bern","status":"idle","hosts":4}`)
	s.want("GET", path+"/basel?fields=run/id", "", 200, `{"run":{"id":7}}`)
	s.want("GET", path+"/chur", "", 404, `there is no environment chur; there are: basel, bern, default`)
	next := s.want("GET", path+"?limit=2&keys=true", "", 200, `["basel","bern"]`).Get("Link")
	target, _, _ := strings.Cut(strings.TrimPrefix(next, "<"), ">")
	if u, err := url.Parse(target); err != nil || u.Query().Get("after") != "bern" {
		t.Fatalf("the next page is %s, %v", next, err)
	}
	if last := s.want("GET", target, "", 200, `["default"]`).Get("Link"); last != "" {
		t.Errorf("after the last page comes %s", last)
	}
	s.want("GET", path+"?after=bask&keys=true", "", 200, `["bern","default"]`)
	s.want("GET", path+"?after=", "", 400, "it is empty; give a name or omit it")
	s.want("GET", path+"?limit=0", "", 400, "is not a number of environments; use 1 to 1000")
	s.want("GET", path+"?limit=1001", "", 400, "is not a number of environments; use 1 to 1000")
	s.want("GET", path+"?count=true&limit=2", "", 400, "it counts all environments; omit after and limit")
}

// WindowsOf knows the windows of basel.
func (*shopkeeper) WindowsOf(_ context.Context, environment string, from, _ time.Time, _ int) ([]v1.Window, error) {
	if environment != "basel" {
		return nil, &run.NoEnvironment{Name: environment}
	}
	return []v1.Window{{Environment: "basel", Start: from, End: from.Add(time.Hour), Length: "1h"}}, nil
}

// TestWindowsOfEnvironments checks that windows of one environment are listed and subscribed to.
func TestWindowsOfEnvironments(t *testing.T) {
	t.Parallel()
	s := serve(t, &shopkeeper{}, access.Reads)
	const path = "/v1/state/tenants/acme/os-upgrade/windows"
	s.want("GET", path+"?environment=basel&fields=environment", "", 200, `[{"environment":"basel"}]`)
	s.want("GET", path+".ics?environment=basel", "", 200, "SUMMARY:OS upgrades of acme: basel")
	s.want("GET", path+"?environment=chur", "", 404, "chur")
	s.want("GET", path+"?environment=B%20", "", 400, "is not the name of an environment")
	s.want("GET", path+"?environment=basel&environments=true", "", 400, "it is for all environments; omit environment")
}
