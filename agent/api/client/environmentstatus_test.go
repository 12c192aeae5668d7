package client

import (
	"net/http"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestEnvironmentStatuses checks that the client reads what environments are doing.
func TestEnvironmentStatuses(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	c := connect(t, s)
	all, err := c.EnvironmentStatuses(t.Context(), "acme")
	if err != nil || len(all) != 1 || all[0].Name != "default" {
		t.Errorf("without any there are %+v, %v", all, err)
	}
	s.SetEnvironments("acme", v1.EnvironmentStatus{Name: "basel", Status: "idle"}, v1.EnvironmentStatus{Name: "bern", Status: "upgrading", Hosts: 7}, v1.EnvironmentStatus{Name: "default", Status: "idle"})
	if all, err = c.EnvironmentStatuses(t.Context(), "acme"); err != nil || len(all) != 3 || all[1].Hosts != 7 {
		t.Errorf("they are %+v, %v", all, err)
	}
	if one, err := c.EnvironmentStatus(t.Context(), "acme", "bern"); err != nil || one.Status != "upgrading" {
		t.Errorf("bern is %+v, %v", one, err)
	}
	if _, err := c.EnvironmentStatus(t.Context(), "acme", "chur"); !Missing(err) || !strings.Contains(err.Error(), `there is no environment chur`) {
		t.Errorf("an absent one is %v", err)
	}
	if _, err := c.EnvironmentStatus(t.Context(), "acme", "a/b"); err == nil || HasStatus(err, http.StatusNotFound) {
		t.Errorf("what is no name is %v", err)
	}
}
