package guard

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/durable"
)

// slowFile is a file whose writes wait until they are let go, and may fail.
type slowFile struct {
	*File
	begun chan struct{}
	let   chan error
	sizes []int
}

func openSlow(t *testing.T) *slowFile {
	t.Helper()
	f, err := OpenFile(filepath.Join(t.TempDir(), "guard.json"))
	if err != nil {
		t.Fatal(err)
	}
	s := &slowFile{File: f, begun: make(chan struct{}, 100), let: make(chan error)}
	f.write = func(path string, data []byte, mode fs.FileMode) error {
		s.begun <- struct{}{}
		s.sizes = append(s.sizes, len(data))
		if err := <-s.let; err != nil {
			return err
		}
		return durable.WriteFile(path, data, mode)
	}
	return s
}

// keep has the guard of a tenant keep a log of n records.
func keep(f *File, tenant string, n int) error {
	g := f.Guard(tenant)
	for _, r := range records(n) {
		if err := g.See(r); err != nil {
			return err
		}
	}
	return g.Keep()
}

// TestManyTenants checks that the guards of many tenants share one file and its
// writes: a thousand that keep at once cost two.
func TestManyTenants(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const tenants = 1000
		f := openSlow(t)
		var keeping sync.WaitGroup
		for i := range tenants {
			keeping.Go(func() {
				if err := keep(f.File, fmt.Sprint("tenant-", i), 1+i%5); err != nil {
					t.Error(err)
				}
			})
			if i == 0 {
				<-f.begun // Its write is in progress when the others come.
			}
		}
		synctest.Wait()
		f.let <- nil
		<-f.begun
		f.let <- nil
		keeping.Wait()
		if len(f.sizes) != 2 {
			t.Errorf("there were %d writes", len(f.sizes))
		}
		again, err := OpenFile(f.path)
		if err != nil {
			t.Fatal(err)
		}
		for i := range tenants {
			if got := again.Guard(fmt.Sprint("tenant-", i)).kept.Seq; got != uint64(1+i%5) {
				t.Errorf("tenant %d is kept up to %d", i, got)
			}
		}
	})
}

// TestWriteFails checks that a write that fails tells all whose States were in it,
// and that none of these counts until it is written.
func TestWriteFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, full := openSlow(t), errors.New("no space left on device")
		results := make(chan error, 3)
		for _, tenant := range []string{"first", "one", "other"} {
			go func() { results <- keep(f.File, tenant, 3) }()
			synctest.Wait()
		}
		f.let <- nil
		f.let <- full
		if err := errors.Join(<-results, <-results, <-results); strings.Count(fmt.Sprint(err), full.Error()) != 2 {
			t.Errorf("the results are %v", err)
		}
		for tenant, want := range map[string]uint64{"first": 3, "one": 0, "other": 0} {
			if got := f.Guard(tenant).kept.Seq; got != want {
				t.Errorf("tenant %s is kept up to %d, not %d", tenant, got, want)
			}
		}
		go func() { results <- keep(f.File, "one", 3) }()
		f.let <- nil
		if err := <-results; err != nil || f.Guard("one").kept.Seq != 3 {
			t.Errorf("the next write: %v", err)
		}
	})
}

// TestTenantsApart checks that the guard of one tenant knows nothing of another's log,
// and that no tenant is lost by damage of the file.
func TestTenantsApart(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "guard.json")
	f, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(keep(f, "acme", 10), keep(f, "other", 2)); err != nil {
		t.Fatal(err)
	}
	if err := show(path, records(9)); err == nil {
		t.Error("a log that was cut is not noticed")
	}
	if err := f.Guard("third").End(0); err != nil {
		t.Errorf("a tenant without a log: %v", err)
	}
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for old, changed := range map[string]string{`"acme"`: `"acmf"`, `"logs"`: `"logz"`, `"seq":10`: `"seq":1`, `"logs":{`: `"logs":{},"x":{`} {
		if err := os.WriteFile(path, bytes.Replace(body, []byte(old), []byte(changed), 1), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenFile(path); err == nil || !strings.Contains(err.Error(), "is damaged") {
			t.Errorf("with %s for %s it is %v", changed, old, err)
		}
	}
}
