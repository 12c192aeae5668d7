// Package packed compresses what is stored or sent, with gzip (RFC 1952).
//
// Writers and readers are used again: a new writer clears 800 KiB and more, which is more than
// all else that most callers do.
package packed

import (
	"bytes"
	"compress/gzip"
	"io"
	"sync"
)

// Packer compresses at one level.
type Packer struct{ writers sync.Pool }

// Small packs tightly: for what is sent. Fast takes less time: for what is stored.
var (
	Small = level(gzip.DefaultCompression)
	Fast  = level(gzip.BestSpeed)
)

func level(level int) *Packer {
	return &Packer{writers: sync.Pool{New: func() any {
		w, _ := gzip.NewWriterLevel(nil, level) // Only an unknown level is an error.
		return w
	}}}
}

// Pack returns a body in packed form.
func (p *Packer) Pack(body []byte) ([]byte, error) {
	var out bytes.Buffer
	writer := p.writers.Get().(*gzip.Writer) //nolint:forcetypeassert // The pool has nothing else.
	defer p.writers.Put(writer)
	writer.Reset(&out)
	if _, err := writer.Write(body); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// readers are used again: a new one takes 40 KiB.
var readers = sync.Pool{New: func() any { return new(gzip.Reader) }}

// Unpack returns the first most bytes of what was packed.
func Unpack(packed []byte, most int) ([]byte, error) {
	reader := readers.Get().(*gzip.Reader) //nolint:forcetypeassert // The pool has nothing else.
	defer readers.Put(reader)
	if err := reader.Reset(bytes.NewReader(packed)); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(reader, int64(most)))
}
