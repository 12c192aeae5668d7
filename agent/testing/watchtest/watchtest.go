// Package watchtest checks what a watch of files tells, for tests.
package watchtest

import (
	"context"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/filewatch"
)

// Tells checks whether a watch of some paths tells of what a function does.
func Tells(t *testing.T, paths []string, want bool, what string, change func() error) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	told, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		ended <- filewatch.Watch(ctx, paths, func() {
			select {
			case told <- struct{}{}:
			default:
			}
		})
	}()
	select {
	case <-told: // The watch has begun.
	case err := <-ended:
		t.Fatalf("the watch of %q ends with %v", paths, err)
	}
	if err := change(); err != nil {
		t.Fatal(err)
	}
	// What is not told can only be waited for: one that comes later would be missed.
	patience := 50 * time.Millisecond
	if want {
		patience = 10 * time.Second
	}
	select {
	case <-told:
		if !want {
			t.Errorf("the watch tells of %s", what)
		}
	case <-time.After(patience):
		if want {
			t.Errorf("the watch does not tell of %s", what)
		}
	}
}
