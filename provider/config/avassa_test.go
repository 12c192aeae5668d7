package config_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

// storedBody checks the JSON text that the server has, with the members that no
// attribute is for.
func storedBody(api *fakeapi.Server, want string) resource.TestCheckFunc {
	return func(*terraform.State) error {
		var got, expected any
		body := api.ConfigBody(acctest.Tenant)
		if err := json.Unmarshal([]byte(want), &expected); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(body), &got); err != nil || !reflect.DeepEqual(got, expected) {
			return fmt.Errorf("the server has %s, want %s", body, want)
		}
		return nil
	}
}

// TestAccConfig_keepsMembersThatItDoesNotKnow: Avassa's server has members of its own,
// beside the lists and in entries of lists that are not even managed. No write deletes
// them.
func TestAccConfig_keepsMembersThatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	api.Avassa()
	const apps = `"worker-applications":[{"name":"a","x-extra":{"deep":[1,2]}}]`
	const others = `"future-key":{"since":"2027"},` + apps
	api.SetConfigBody(acctest.Tenant, `{`+others+`}`)
	const jsonA = `"days-of-week":"Friday, Saturday","start-time":"01:00","timezone":"site-local"`
	withA := `{` + others + `,"maintenance-windows":[{` + jsonA + `,"duration":"4h"}]}`
	withLabel := `{` + others + `,"maintenance-windows":[{` + jsonA + `,"duration":"4h","x-label":"night"}]}`
	acctest.Run(t, resource.TestCase{
		CheckDestroy: storedBody(api, `{"future-key":{"since":"2027"},"worker-applications":[],"maintenance-windows":[]}`),
		Steps: []resource.TestStep{
			{Config: server.Config(owner(windowA)), Check: storedBody(api, withA)},
			{
				PreConfig:        func() { api.SetConfigBody(acctest.Tenant, withLabel) },
				Config:           server.Config(owner(windowA)),
				ConfigPlanChecks: emptyPlan(),
			},
			{
				Config: server.Config(owner(`{ days_of_week = ["Friday", "Saturday"], start_time = "01:00", duration = "5h" }`)),
				Check:  storedBody(api, `{`+others+`,"maintenance-windows":[{`+jsonA+`,"duration":"5h","x-label":"night"}]}`),
			},
			{Config: server.Config(block(`worker_applications = ["a"]` + "\n maintenance_windows = [" + windowA + "]"))},
			{
				Config: server.Config(block(`worker_applications = ["b", "a"]` + "\n maintenance_windows = [" + windowA + "]")),
				Check: storedBody(api, `{"future-key":{"since":"2027"},"worker-applications":[{"name":"a","x-extra":{"deep":[1,2]}},{"name":"b"}],`+
					`"maintenance-windows":[{`+jsonA+`,"duration":"4h","x-label":"night"}]}`),
			},
		},
	})
}

// TestAccConfig_isNotDeletedWithWhatItDoesNotKnow: a deletion leaves members that it does
// not know.
func TestAccConfig_isNotDeletedWithWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	api.Avassa()
	acctest.Run(t, resource.TestCase{
		CheckDestroy: storedBody(api, `{"future-key":1,"worker-applications":[],"maintenance-windows":[]}`),
		Steps: []resource.TestStep{
			{Config: server.Config(block(complete))},
			{
				PreConfig: func() {
					api.SetConfigBody(acctest.Tenant, `{"future-key":1,`+api.ConfigBody(acctest.Tenant)[1:])
				},
				Config:           server.Config(block(complete)),
				ConfigPlanChecks: emptyPlan(),
			},
		},
	})
}
