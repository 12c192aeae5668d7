package site

import (
	"archive/tar"
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// claimed is how large an entry says that it is.
const claimed = 60 << 30

// tarBlock returns the header of an entry in the old form of GNU tar, and what follows it.
func tarBlock(name string, kind byte, size int64, set func(head []byte), body string) []byte {
	head := make([]byte, 512)
	copy(head, name)
	copy(head[100:], "0000600\x000000000\x000000000\x00")
	copy(head[124:], fmt.Sprintf("%011o\x0000000000000\x00        ", size))
	head[156] = kind
	copy(head[257:], "ustar  \x00")
	if set != nil {
		set(head)
	}
	sum := 0
	for _, b := range head {
		sum += int(b)
	}
	copy(head[148:], fmt.Sprintf("%06o\x00 ", sum))
	return slices.Concat(head, []byte(body), make([]byte, (512-len(body)%512)%512))
}

// base256 is a number that is too large for octal digits.
func base256(to []byte, n int64) {
	for i := len(to) - 1; i > 0; i-- {
		to[i], n = byte(n), n>>8
	}
	to[0] = 0x80
}

// TestUnpackHostile checks that an entry of a backup takes no more memory than it may, whatever
// it says of its size, and that the error names it. It is not parallel: it measures memory.
func TestUnpackHostile(t *testing.T) { //nolint:paralleltest // see above
	large := func(head []byte) { base256(head[124:136], claimed) }
	sparse := func(head []byte) { // 512 bytes, and a hole behind them.
		copy(head[386:], "00000000000\x0000000001000\x00")
		base256(head[410:422], claimed)
		copy(head[422:], "00000000000\x00")
		base256(head[483:495], claimed)
	}
	records := ""
	for _, record := range []string{"GNU.sparse.major=1", "GNU.sparse.minor=0", "GNU.sparse.name=tls/key.pem", fmt.Sprintf("GNU.sparse.realsize=%d", int64(claimed))} {
		records += fmt.Sprintf("%d %s\n", len(record)+4, record)
	}
	var good bytes.Buffer
	w := tar.NewWriter(&good)
	if err := w.WriteHeader(&tar.Header{Name: "tls/cert.pem", Mode: 0o600, Size: 4}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("cert")); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	data := strings.Repeat("k", 512)
	for what, row := range map[string]struct { //nolint:paralleltest // see above
		entry []byte
		want  string
	}{
		"an old sparse entry": {tarBlock("tls/key.pem", tar.TypeGNUSparse, 512, sparse, data), `"tls/key.pem" is no file of a backup`},
		"a sparse entry": {
			append(tarBlock("x", tar.TypeXHeader, int64(len(records)), nil, records), tarBlock("y", tar.TypeReg, 1024, nil, "1\n0\n512\n"+strings.Repeat("\x00", 503)+data)...),
			`"tls/key.pem" is no file of a backup`,
		},
		"a large entry": {tarBlock("tls/key.pem", tar.TypeReg, 0, large, data), `"tls/key.pem" has 64424509440 bytes; a file of a backup has at most 268435456`},
		"a large list":  {tarBlock(listName, tar.TypeReg, 0, large, data), `"backup.json" has 64424509440 bytes`},
	} {
		t.Run(what, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := unpack(bytes.NewReader(append(bytes.Clone(good.Bytes()), row.entry...)), t.TempDir())
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("%v, and not %s", err, row.want)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 16<<20 {
				t.Errorf("it took %d MiB", took>>20)
			}
		})
	}
}
