package dnf

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
)

// TestCachesOfAnotherBoot: a power cut may have torn them, so each action removes them once in a boot.
func TestCachesOfAnotherBoot(t *testing.T) {
	t.Parallel()
	both(t, "", func(t *testing.T, s *Strategy) {
		const metadata = "a-1/repodata/repomd.xml"
		caches := []string{"a.solv", "a-updateinfo.solvx"}
		if s.generation == &dnf5 {
			caches = []string{"a-1/solv/a.solv", "a-1/solv/a-updateinfo.solvx"}
		}
		now, then := s.cache, filepath.Join(s.pastCaches(), "20260102T030405Z")
		for _, step := range []struct {
			boot  string
			stays bool
		}{{"one", false}, {"one", true}, {"two", false}} {
			for _, folder := range []string{now, then} {
				for _, name := range append([]string{metadata}, caches...) {
					file := s.host.Path(filepath.Join(folder, name))
					if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, nil, 0o600)); err != nil {
						t.Fatal(err)
					}
				}
			}
			if _, err := s.call(t.Context(), strategy.Job{BootID: step.boot}); err != nil {
				t.Fatal(err)
			}
			for _, folder := range []string{now, then} {
				if !s.host.Exists(filepath.Join(folder, metadata)) {
					t.Errorf("in boot %s, metadata is removed from %s", step.boot, folder)
				}
				for _, name := range caches {
					if got := s.host.Exists(filepath.Join(folder, name)); got != step.stays {
						t.Errorf("in boot %s, %s of %s stays: %v, want %v", step.boot, name, folder, got, step.stays)
					}
				}
			}
		}
	})
}
