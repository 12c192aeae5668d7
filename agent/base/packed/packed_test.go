package packed_test

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/packed"
)

// TestPack packs and unpacks from many sides at once: each gets its own body back, and no more
// of it than it wants.
func TestPack(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	for i := range 8 {
		body := []byte(strings.Repeat("Setting up libc6\n", 1+i*100))
		all.Go(func() {
			for _, packer := range []*packed.Packer{packed.Small, packed.Fast, packed.Fast} {
				out, err := packer.Pack(body)
				if err != nil {
					t.Error(err)
				}
				if got, err := packed.Unpack(out, len(body)); err != nil || !bytes.Equal(got, body) {
					t.Errorf("of %d bytes %d are unpacked: %v", len(body), len(got), err)
				}
				if got, err := packed.Unpack(out, 7); err != nil || string(got) != "Setting" {
					t.Errorf("the first 7 bytes are %q: %v", got, err)
				}
			}
			if _, err := packed.Unpack([]byte("not packed"), 100); err == nil {
				t.Error("what was never packed is unpacked")
			}
		})
	}
	all.Wait()
}

// BenchmarkPack packs the output of an action.
func BenchmarkPack(b *testing.B) {
	body := []byte(strings.Repeat("Unpacking libc6:amd64 (2.36-9+deb12u8) over (2.36-9+deb12u7) ...\n", 64))
	for name, packer := range map[string]*packed.Packer{"small": packed.Small, "fast": packed.Fast} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := packer.Pack(body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
