package provider

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// weight is what the context of a call has with it, such as its loggers.
type weight struct{}

// TestServer_forgetsCalls: what the context of a call has is freed when the call has ended,
// however many there are. The framework's own server keeps all of it.
//
//nolint:paralleltest // it measures the memory of the process
func TestServer_forgetsCalls(t *testing.T) {
	const calls, each = 300, 100 << 10
	server := NewServer("test")()
	schemas, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	kept := func(server tfprotov6.ProviderServer) uint64 {
		of := schemas.DataSourceSchemas["osupgrade_state"].ValueType()
		config, err := tfprotov6.NewDynamicValue(of, tftypes.NewValue(of, nil))
		if err != nil {
			t.Fatal(err)
		}
		before := heap()
		for range calls {
			ctx, cancel := context.WithCancel(context.WithValue(t.Context(), weight{}, make([]byte, each)))
			if _, err := server.ValidateDataResourceConfig(ctx, &tfprotov6.ValidateDataResourceConfigRequest{TypeName: "osupgrade_state", Config: &config}); err != nil {
				t.Fatal(err)
			}
			cancel() // As gRPC does.
		}
		after := heap()
		runtime.KeepAlive(server)
		return max(after, before) - before
	}
	if n := kept(server); n > calls*each/10 {
		t.Errorf("%d KiB of %d calls are kept", n>>10, calls)
	}
	lent, ok := server.(lender)
	if !ok {
		t.Fatalf("the server is a %T: does the framework implement what it did?", server)
	}
	// When this fails, the framework forgets calls itself, and the lender can go.
	if n := kept(lent.framework); n < calls*each/2 {
		t.Errorf("the framework keeps %d KiB alone", n>>10)
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestLent: a call has its context for as long as it takes, with a signal to stop, and none
// after that.
func TestLent(t *testing.T) {
	t.Parallel()
	parent, stop := context.WithCancel(context.WithValue(t.Context(), weight{}, "heavy"))
	var inner, after context.Context
	answer, err := lent(parent, 7, func(ctx context.Context, n int) (int, error) {
		after = ctx
		if ctx.Value(weight{}) != "heavy" || ctx.Err() != nil {
			t.Errorf("the call has %v, %v", ctx.Value(weight{}), ctx.Err())
		}
		if at, bounded := ctx.Deadline(); bounded {
			t.Errorf("the call ends at %s", at)
		}
		var cancel context.CancelFunc
		inner, cancel = context.WithCancel(ctx)
		defer cancel()
		stop()
		<-inner.Done()
		return n + 1, errors.New("stopped")
	})
	if answer != 8 || err == nil || !errors.Is(inner.Err(), context.Canceled) {
		t.Errorf("got %d, %v, %v", answer, err, inner.Err())
	}
	if after.Value(weight{}) != nil || after.Err() == nil {
		t.Errorf("after the call there is %v, %v", after.Value(weight{}), after.Err())
	}
	<-after.Done()
}
