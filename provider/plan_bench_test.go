package provider_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/measure"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

const manyConfigs = `
resource "osupgrade_config" "many" {
  count               = %d
  tenant              = "tenant-${count.index}"
  worker_applications = ["os-upgrade-simulated"]
  maintenance_windows = [{ days_of_week = ["Friday", "Saturday"], start_time = "01:00", duration = "4h" }]
}`

const manyData = `
resource "terraform_data" "many" {
  count = %d
  input = {
    tenant              = "tenant-${count.index}"
    worker_applications = ["os-upgrade-simulated"]
    maintenance_windows = [{ days_of_week = ["Friday", "Saturday"], start_time = "01:00", duration = "4h" }]
  }
}`

// BenchmarkPlan is terraform plan, with refresh, of 1,000 configurations at two distances of
// the server, in comparison with the peer (ours/peer) and with terraform_data, which is what
// Terraform itself costs. The three take turns, so that the load of the machine is that of all.
func BenchmarkPlan(b *testing.B) {
	for _, latency := range []time.Duration{0, 20 * time.Millisecond} {
		b.Run(latency.String(), func(b *testing.B) {
			api := fakeapi.New(b)
			server := acctest.Server{Endpoint: api.URL, Token: api.Token, Tenant: acctest.Tenant}
			size := measure.Size(1000)
			ours, peer, data := acctest.NewWorkspace(b, server.Env()...), newPeerWorkspace(b, server.Env()...), acctest.NewWorkspace(b)
			ours.Write(b, "main.tf", server.Config(fmt.Sprintf(manyConfigs, size)))
			peer.Write(b, "main.tf", server.Config(fmt.Sprintf(manyConfigs, size)))
			data.Write(b, "main.tf", fmt.Sprintf(manyData, size))
			for _, w := range []*acctest.Workspace{ours, peer, data} {
				w.Run(b, 0, "apply", "-auto-approve", "-no-color")
			}
			api.Latency(latency)
			api.ForgetRequests()
			var total [3]cost
			for b.Loop() {
				for i, w := range []*acctest.Workspace{ours, peer, data} {
					total[i] = total[i].plus(costOf(b, w, "plan", "-detailed-exitcode", "-no-color"))
				}
			}
			n := float64(b.N)
			b.ReportMetric(total[0].wall.Seconds()/n, "s/plan")
			b.ReportMetric(total[0].cpu.Seconds()/n, "cpu-s/plan")
			b.ReportMetric(total[0].cpu.Seconds()/total[1].cpu.Seconds(), "cpu/peer")
			b.ReportMetric(total[0].wall.Seconds()/total[1].wall.Seconds(), "wall/peer")
			b.ReportMetric(total[0].wall.Seconds()/total[2].wall.Seconds(), "wall/terraform_data")
			b.ReportMetric(total[0].peak, "MiB")
			b.ReportMetric(float64(len(api.Requests()))/n, "requests/plan")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkApply is terraform apply of 200 configurations at 20 ms from the server: all of it,
// over its floor, which is the time of the requests alone at the usual parallelism, and over
// terraform_data, which is what Terraform itself costs. The provider's own part is
// BenchmarkChanges.
func BenchmarkApply(b *testing.B) {
	var ours, data, floor time.Duration
	var requests int
	for b.Loop() {
		api := fakeapi.New(b)
		api.Latency(away)
		server := acctest.Server{Endpoint: api.URL, Token: api.Token, Tenant: acctest.Tenant}
		w, d := acctest.NewWorkspace(b, server.Env()...), acctest.NewWorkspace(b)
		w.Write(b, "main.tf", server.Config(fmt.Sprintf(manyConfigs, measure.Size(200))))
		d.Write(b, "main.tf", fmt.Sprintf(manyData, measure.Size(200)))
		ours += costOf(b, w, "apply", "-auto-approve", "-no-color").wall
		data += costOf(b, d, "apply", "-auto-approve", "-no-color").wall
		requests += len(api.Requests())
		floor += floorOf(api)
	}
	b.ReportMetric(ours.Seconds()/float64(b.N), "s/apply")
	b.ReportMetric(float64(requests)/float64(b.N), "requests/apply")
	b.ReportMetric(ours.Seconds()/floor.Seconds(), "wall/floor")
	b.ReportMetric(ours.Seconds()/data.Seconds(), "wall/terraform_data")
	b.ReportMetric(0, "ns/op")
}

// away is how far a server is in the benchmarks of an apply, atATime how many changes
// Terraform makes at a time.
const away, atATime = 20 * time.Millisecond, 10

// floorOf is the time of all requests that a server has had.
func floorOf(api *fakeapi.Server) time.Duration {
	return away * time.Duration(len(api.Requests())) / atATime
}

// BenchmarkChanges is the same 200 creations as Terraform asks a provider for them, without
// Terraform: all are planned by one process, then planned and applied by another.
func BenchmarkChanges(b *testing.B) {
	var took, floor time.Duration
	for b.Loop() {
		api := fakeapi.New(b)
		api.Latency(away)
		server := acctest.Server{Endpoint: api.URL, Token: api.Token, Tenant: acctest.Tenant}
		planner, applier := configured(b, server), configured(b, server)
		began := time.Now()
		atOnce(measure.Size(200), func(i int) { planner.create(b, i) })
		atOnce(measure.Size(200), func(i int) { applier.apply(b, i, applier.create(b, i)) })
		took += time.Since(began)
		floor += floorOf(api)
	}
	b.ReportMetric(took.Seconds()/float64(b.N), "s/apply")
	b.ReportMetric(took.Seconds()/floor.Seconds(), "wall/floor")
	b.ReportMetric(0, "ns/op")
}

// atOnce does something so many times, with as many at a time as Terraform.
func atOnce(times int, do func(i int)) {
	var all sync.WaitGroup
	next := make(chan int)
	for range atATime {
		all.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range times {
		next <- i
	}
	close(next)
	all.Wait()
}

// create plans the creation of the configuration of a tenant.
func (p protocol) create(b *testing.B, i int) *tfprotov6.PlanResourceChangeResponse {
	none, want := p.tenantConfig(b, i)
	planned, err := p.PlanResourceChange(b.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: "osupgrade_config", PriorState: none, ProposedNewState: want, Config: want,
	})
	if err != nil || len(planned.Diagnostics) > 0 {
		b.Errorf("%v %v", err, planned.Diagnostics)
	}
	return planned
}

func (p protocol) apply(b *testing.B, i int, planned *tfprotov6.PlanResourceChangeResponse) {
	none, want := p.tenantConfig(b, i)
	applied, err := p.ApplyResourceChange(b.Context(), &tfprotov6.ApplyResourceChangeRequest{
		TypeName: "osupgrade_config", PriorState: none, PlannedState: planned.PlannedState, Config: want,
		PlannedPrivate: planned.PlannedPrivate, PlannedIdentity: planned.PlannedIdentity,
	})
	if err != nil || len(applied.Diagnostics) > 0 {
		b.Errorf("%v %v", err, applied.Diagnostics)
	}
}

// tenantConfig returns no configuration, and that of a tenant.
func (p protocol) tenantConfig(b *testing.B, i int) (none, want *tfprotov6.DynamicValue) {
	of := p.schemas.ResourceSchemas["osupgrade_config"].ValueType()
	nothing, err := tfprotov6.NewDynamicValue(of, tftypes.NewValue(of, nil))
	if err != nil {
		b.Error(err)
	}
	window := tftypes.Object{AttributeTypes: map[string]tftypes.Type{
		"days_of_week": tftypes.Set{ElementType: tftypes.String}, "start_time": tftypes.String, "timezone": tftypes.String, "duration": tftypes.String,
	}}
	return &nothing, object(b, of, map[string]tftypes.Value{
		"tenant":              text(fmt.Sprintf("tenant-%d", i)),
		"worker_applications": tftypes.NewValue(tftypes.Set{ElementType: tftypes.String}, []tftypes.Value{text("os-upgrade-simulated")}),
		"maintenance_windows": tftypes.NewValue(tftypes.List{ElementType: window}, []tftypes.Value{tftypes.NewValue(window, map[string]tftypes.Value{
			"days_of_week": tftypes.NewValue(tftypes.Set{ElementType: tftypes.String}, []tftypes.Value{text("Friday"), text("Saturday")}),
			"start_time":   text("01:00"), "timezone": text("site-local"), "duration": text("4h"),
		})}),
	})
}

// BenchmarkStart is the start of the provider up to its schemas, as a CLI asks for them.
func BenchmarkStart(b *testing.B) {
	program := acctest.Binary(b)
	for b.Loop() {
		if err := askForSchemas(b.Context(), program); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/start")
	b.ReportMetric(0, "ns/op")
}

// askForSchemas starts the provider, asks for its schemas over the plugin protocol, and ends
// it. What they are is read elsewhere (schema_test.go).
func askForSchemas(ctx context.Context, program string) (err error) {
	command := exec.CommandContext(ctx, program)
	command.Env = append(os.Environ(), "TF_PLUGIN_MAGIC_COOKIE=d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2", "PLUGIN_PROTOCOL_VERSIONS=6")
	out, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	defer func() {
		killed := command.Process.Kill()
		_ = command.Wait() // It was killed.
		err = errors.Join(err, killed)
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return err
	}
	// Such as 1|6|unix|/tmp/plugin123|grpc|.
	fields := strings.Split(strings.TrimSpace(line), "|")
	if len(fields) < 5 {
		return fmt.Errorf("the provider begins with %q", line)
	}
	conn, err := grpc.NewClient("unix:"+fields[3], grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	var schemas emptypb.Empty // Its unknown fields are the schemas.
	if err := conn.Invoke(ctx, "/tfplugin6.Provider/GetProviderSchema", &emptypb.Empty{}, &schemas); err != nil {
		return err
	}
	if len(schemas.ProtoReflect().GetUnknown()) < 1000 {
		return errors.New("the provider has no schemas")
	}
	return nil
}

// cost is what a command of the CLI takes, with its provider.
type cost struct {
	wall, cpu time.Duration
	// peak is the largest memory of the provider, in MiB.
	peak float64
}

func (c cost) plus(other cost) cost {
	return cost{c.wall + other.wall, c.cpu + other.cpu, max(c.peak, other.peak)}
}

func costOf(b *testing.B, w *acctest.Workspace, args ...string) cost {
	b.Helper()
	cli := acctest.CLI(b)
	command := exec.CommandContext(b.Context(), cli, args...)
	command.Dir, command.Env = w.Dir, append(os.Environ(), w.Env...)
	var out strings.Builder
	command.Stdout, command.Stderr = &out, &out
	begin := time.Now()
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	ended, peak := make(chan struct{}), make(chan float64)
	go func() { peak <- peakOfChildren(command.Process.Pid, ended) }()
	err := command.Wait()
	took := time.Since(begin)
	close(ended)
	c := cost{took, command.ProcessState.UserTime() + command.ProcessState.SystemTime(), <-peak}
	if err != nil {
		b.Fatalf("%v: %v\n%s", args, err, out.String())
	}
	return c
}

// peakOfChildren looks at the memory of the children of a process until that has ended.
func peakOfChildren(pid int, ended <-chan struct{}) (peak float64) {
	for {
		lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // The pattern is a good one.
		for _, list := range lists {
			// The process may end at any moment.
			text, _ := os.ReadFile(list)
			for child := range strings.FieldsSeq(string(text)) {
				// Before it is the provider, the child is a copy of the CLI.
				program, _ := os.Readlink("/proc/" + child + "/exe")
				if mib, err := measure.Peak(child); err == nil && strings.HasPrefix(filepath.Base(program), "terraform-provider") {
					peak = max(peak, mib)
				}
			}
		}
		select {
		case <-ended:
			return peak
		case <-time.After(20 * time.Millisecond):
		}
	}
}
