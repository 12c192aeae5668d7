package provider_test

import (
	"fmt"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/client/fakeapi"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/measure"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

// BenchmarkPlan is terraform plan, with refresh, of 1,000 configurations, and
// beside it of 1,000 terraform_data, which is what Terraform itself costs.
func BenchmarkPlan(b *testing.B) {
	for name, resource := range map[string]string{
		"osupgrade_config": `
resource "osupgrade_config" "many" {
  count               = %d
  tenant              = "tenant-${count.index}"
  worker_applications = ["os-upgrade-simulated"]
  maintenance_windows = [{ days_of_week = ["Friday", "Saturday"], start_time = "01:00", duration = "4h" }]
}`,
		"terraform_data": `
resource "terraform_data" "many" {
  count = %d
  input = {
    tenant              = "tenant-${count.index}"
    worker_applications = ["os-upgrade-simulated"]
    maintenance_windows = [{ days_of_week = ["Friday", "Saturday"], start_time = "01:00", duration = "4h" }]
  }
}`,
	} {
		b.Run(name, func(b *testing.B) {
			api := fakeapi.New(b)
			server := acctest.Server{Endpoint: api.URL, Token: api.Token, Tenant: acctest.Tenant}
			w := acctest.NewWorkspace(b, server.Env()...)
			w.Write(b, "main.tf", server.Config(fmt.Sprintf(resource, measure.Size(1000))))
			w.Run(b, 0, "apply", "-auto-approve", "-no-color")
			for b.Loop() {
				w.Run(b, 0, "plan", "-detailed-exitcode", "-no-color")
			}
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/plan")
			b.ReportMetric(0, "ns/op")
		})
	}
}
