package site

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
)

// snapshotRequest asks the server for a snapshot of a stream (JetStream API).
type snapshotRequest struct {
	DeliverSubject string `json:"deliver_subject"`
	// NoConsumers leaves out the consumers, of which none outlives its connection, and
	// CheckMsgs has the server check each record before.
	NoConsumers bool `json:"no_consumers"`
	CheckMsgs   bool `json:"jsck"`
}

// streamSettings is what the server says of a stream before its snapshot, and wants to
// be told before it restores it.
type streamSettings struct {
	Config json.RawMessage `json:"config"`
	State  json.RawMessage `json:"state"`
}

// response is what all responses of the server have in common.
type response struct {
	Error *struct {
		Description string `json:"description"`
	} `json:"error"`
}

// request sends a request to the server and reads its response.
func request(ctx context.Context, nc *nats.Conn, subject string, body []byte, into any) error {
	ctx, cancel := context.WithTimeout(ctx, chunkTimeout)
	defer cancel()
	msg, err := nc.RequestWithContext(ctx, subject, body)
	if err != nil {
		return err
	}
	var r response
	if err := json.Unmarshal(msg.Data, &r); err != nil {
		return err
	}
	if r.Error != nil {
		return errors.New(r.Error.Description)
	}
	return json.Unmarshal(msg.Data, into)
}

// chunkTimeout is how long the server may take for the next chunk.
const chunkTimeout = 30 * time.Second

// snapshot returns the settings of a stream, and its records as they are at one instant.
func snapshot(ctx context.Context, nc *nats.Conn, stream string) ([]byte, io.ReadCloser, error) {
	inbox := nc.NewInbox()
	chunks, err := nc.SubscribeSync(inbox)
	if err != nil {
		return nil, nil, err
	}
	var settings streamSettings
	body, err := json.Marshal(snapshotRequest{DeliverSubject: inbox, NoConsumers: true, CheckMsgs: true})
	if err == nil {
		err = request(ctx, nc, "$JS.API.STREAM.SNAPSHOT."+stream, body, &settings)
	}
	if err == nil {
		body, err = json.Marshal(settings)
	}
	if err != nil {
		return nil, nil, errors.Join(err, chunks.Unsubscribe())
	}
	return body, &chunkReader{ctx: ctx, chunks: chunks}, nil
}

// chunkReader reads the chunks of a snapshot.
type chunkReader struct {
	ctx    context.Context
	chunks *nats.Subscription
	rest   []byte
	ended  bool
}

// Read implements io.Reader.
func (r *chunkReader) Read(to []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.ended {
			return 0, io.EOF
		}
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	n := copy(to, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// next takes the next chunk. An empty one is the last: it says how the snapshot ended.
func (r *chunkReader) next() error {
	ctx, cancel := context.WithTimeout(r.ctx, chunkTimeout)
	defer cancel()
	msg, err := r.chunks.NextMsgWithContext(ctx)
	if err != nil {
		return fmt.Errorf("the snapshot has stopped: %w", err)
	}
	if r.rest, r.ended = msg.Data, len(msg.Data) == 0; r.ended {
		if status := msg.Header.Get("Status"); status != "" && status != "204" {
			return fmt.Errorf("the server has stopped the snapshot: %s %s", status, msg.Header.Get("Description"))
		}
		return nil
	}
	if msg.Reply != "" { // The server sends a few chunks, and then waits for acknowledgements.
		return msg.Respond(nil)
	}
	return nil
}

// Close implements io.Closer.
func (r *chunkReader) Close() error { return r.chunks.Unsubscribe() }

// restoreStreams restores all streams of a backup that was unpacked into a folder.
func restoreStreams(ctx context.Context, nc *nats.Conn, dir string) error {
	streams, err := os.ReadDir(filepath.Join(dir, streamsFolder))
	if err != nil {
		return err
	}
	for _, stream := range streams {
		if err := restoreStream(ctx, nc, stream.Name(), filepath.Join(dir, streamsFolder, stream.Name())); err != nil {
			return fmt.Errorf("cannot restore stream %s: %w", stream.Name(), err)
		}
	}
	return nil
}

// restoreChunk is how much is sent at once, in bytes.
const restoreChunk = 256 << 10

// restoreStream restores a stream from the files of its folder.
func restoreStream(ctx context.Context, nc *nats.Conn, stream, dir string) error {
	settings, err := os.ReadFile(filepath.Join(dir, settingsName))
	if err != nil {
		return err
	}
	var to struct {
		DeliverSubject string `json:"deliver_subject"`
	}
	if err := request(ctx, nc, "$JS.API.STREAM.RESTORE."+stream, settings, &to); err != nil {
		return err
	}
	pieces, err := filepath.Glob(filepath.Join(dir, "[0-9]*"))
	if err != nil {
		return err
	}
	slices.Sort(pieces)
	for _, piece := range pieces {
		body, err := os.ReadFile(piece)
		if err != nil {
			return err
		}
		for chunk := range slices.Chunk(body, restoreChunk) {
			if err := sendChunk(ctx, nc, to.DeliverSubject, chunk); err != nil {
				return err
			}
		}
	}
	var done struct{}
	return request(ctx, nc, to.DeliverSubject, nil, &done)
}

// sendChunk sends one chunk. The server says nothing, or what is wrong.
func sendChunk(ctx context.Context, nc *nats.Conn, subject string, chunk []byte) error {
	ctx, cancel := context.WithTimeout(ctx, chunkTimeout)
	defer cancel()
	msg, err := nc.RequestWithContext(ctx, subject, chunk)
	if err != nil || len(msg.Data) == 0 {
		return err
	}
	var r response
	if err := json.Unmarshal(msg.Data, &r); err == nil && r.Error != nil {
		return errors.New(r.Error.Description)
	}
	return nil
}
