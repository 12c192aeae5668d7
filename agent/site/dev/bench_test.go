package dev_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/site/dev"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/measure"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// BenchmarkRun is a whole run over hosts that take no time: prepare, upgrade,
// reboot and a new worker after it, one host after the other, on disk.
func BenchmarkRun(b *testing.B) {
	for _, hosts := range measure.Sizes(1, 100, 1000) {
		b.Run(fmt.Sprintf("%d-hosts", hosts), func(b *testing.B) {
			api := start(b, hosts)
			for b.Loop() {
				run(b, api)
			}
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N*hosts)*1000, "ms/host")
			measure.SyncedWrite(b, 256)
			mib, err := measure.Resident("self")
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(mib, "MiB-resident")
		})
	}
}

func start(b *testing.B, hosts int) *client.Client {
	b.Helper()
	d, err := dev.Start(b.Context(), dev.Options{Dir: b.TempDir(), Hosts: hosts})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = d.Close() })
	api, err := client.New(client.Options{Endpoint: d.Endpoint, Token: d.Token})
	if err != nil {
		b.Fatal(err)
	}
	config := v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{{Name: dev.Application}}}
	if _, err := api.PutConfig(b.Context(), dev.Tenant, config, client.Precondition{}); err != nil {
		b.Fatal(err)
	}
	return api
}

func run(b *testing.B, api *client.Client) {
	b.Helper()
	begun, err := api.Start(b.Context(), dev.Tenant, v1.Start{OverrideWindow: true, Reason: "a benchmark"})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithTimeout(b.Context(), 10*time.Minute)
	defer stop()
	var last v1.Run
	if err := api.Follow(ctx, dev.Tenant, "", func(n client.News) bool {
		if n.Run != nil {
			last = *n.Run
		}
		return last.ID != begun.ID || !last.Finished()
	}); err != nil {
		b.Fatal(err)
	}
	if last.Result != "completed" {
		b.Fatalf("the run ended as %s: %s", last.Result, last.Reason)
	}
}
