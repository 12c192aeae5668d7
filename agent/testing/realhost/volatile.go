package realhost

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
)

// Power feeds the disks of a virtual machine that have a volatile cache: what is written is
// in the cache, a flush puts all of it on the disk, and a power cut loses what no flush has
// followed, on all disks at the same moment.
type Power struct {
	mu    sync.Mutex
	disks []*volatileDisk
	// aim is where the power is cut; nil if nobody waits for that.
	aim *aim
	// off ends the machine.
	off func()
	// listeners are where the disks are served, and open what is served there.
	listeners []net.Listener
	open      sync.WaitGroup
}

// Aim is a moment of a machine: when Flushes flushes of the disk at Mount have ended since
// a write to that disk that contains Text. Text is empty for any write.
type Aim struct {
	Mount   string
	Text    string
	Flushes int
	// Keep says of each write that no flush has followed whether the disk has it all the
	// same: a cache is written back in any order. Nil is for none.
	Keep func() bool
}

type aim struct {
	Aim
	seen    bool
	flushes int
	hit     chan struct{}
}

// CutAt cuts the power at a moment. The channel is closed then; the machine is to be cut by
// [VM.Cut] as well, which waits for its end. An aim that is not hit is replaced by the next one.
func (p *Power) CutAt(a Aim) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.aim = &aim{Aim: a, hit: make(chan struct{})}
	return p.aim.hit
}

// lose has the disks lose what is in their caches.
func (p *Power) lose() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(nil)
	p.aim = nil
}

func (p *Power) drop(keep func() bool) {
	for _, d := range p.disks {
		for _, w := range d.cache {
			if keep != nil && keep() {
				d.store(w)
			}
		}
		d.cache = nil
		d.cut = d.connections
	}
}

// wrote follows a write, and flushed a flush. They report whether the power was cut.
func (p *Power) wrote(d *volatileDisk, data []byte) {
	if a := p.aim; a != nil && a.Mount == d.mount && !a.seen {
		a.seen = bytes.Contains(data, []byte(a.Text))
	}
	p.judge()
}

func (p *Power) flushed(d *volatileDisk) {
	if a := p.aim; a != nil && a.Mount == d.mount && a.seen {
		a.flushes++
	}
	p.judge()
}

func (p *Power) judge() {
	a := p.aim
	if a == nil || !a.seen || a.flushes < a.Flushes {
		return
	}
	p.drop(a.Keep)
	p.off()
	p.aim = nil
	close(a.hit)
}

// volatileDisk is a disk that QEMU reaches as a network block device, by a socket of this
// machine (the NBD protocol, as github.com/NetworkBlockDevice/nbd describes it).
type volatileDisk struct {
	t     testing.TB
	power *Power
	mount string
	file  *os.File
	size  int64
	// cache are the writes since the last flush, in their order.
	cache []diskWrite
	// connections counts them. Those up to cut are of a machine that has lost its power.
	connections, cut int
}

type diskWrite struct {
	at   int64
	data []byte
}

// serve serves an image as the disk of a mount at a socket.
func (p *Power) serve(t testing.TB, mount, image, socket string) {
	t.Helper()
	file, err := os.OpenFile(image, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", socket) //nolint:noctx // it ends with the test
	if err != nil {
		t.Fatal(err)
	}
	d := &volatileDisk{t: t, power: p, mount: mount, file: file, size: info.Size()}
	p.disks = append(p.disks, d)
	p.listeners = append(p.listeners, listener)
	p.open.Go(func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				_ = file.Close()
				return
			}
			p.open.Go(func() { d.talk(connection) })
		}
	})
}

// close ends the disks of a machine that is off.
func (p *Power) close() {
	for _, listener := range p.listeners {
		_ = listener.Close()
	}
	p.open.Wait()
}

func (d *volatileDisk) talk(connection net.Conn) {
	defer func() { _ = connection.Close() }()
	d.power.mu.Lock()
	d.connections++
	number := d.connections
	d.power.mu.Unlock()
	err := d.negotiate(connection)
	for err == nil {
		err = d.answer(connection, number)
	}
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, net.ErrClosed) && !errors.Is(err, errOff) {
		d.t.Logf("the disk of %s: %v", d.mount, err)
	}
}

// Numbers of the protocol.
const (
	nbdOption      = 0x49484156454F5054 // "IHAVEOPT"
	nbdOptionReply = 0x3e889045565a9
	nbdRequest     = 0x25609513
	nbdReply       = 0x67446698

	nbdAbort, nbdGo                  = 2, 7
	nbdAck, nbdInfo, nbdUnsupported  = 1, 3, 1<<31 + 1
	nbdRead, nbdWrite, nbdDisconnect = 0, 1, 2
	nbdFlush                         = 3
	// nbdFlags are those of a disk: it has flags, and is to be flushed.
	nbdFlags   = 1 | 4
	nbdInvalid = 22
)

var order = binary.BigEndian

// negotiate is the fixed newstyle handshake.
func (d *volatileDisk) negotiate(c net.Conn) error {
	if _, err := c.Write(append([]byte("NBDMAGICIHAVEOPT"), 0, 1|2)); err != nil {
		return err
	}
	if _, err := io.CopyN(io.Discard, c, 4); err != nil {
		return err
	}
	for {
		var head struct {
			Magic        uint64
			Option, Size uint32
		}
		if err := binary.Read(c, order, &head); err != nil {
			return err
		}
		if head.Magic != nbdOption || head.Size > 1<<16 {
			return errors.New("no option of a network block device")
		}
		if _, err := io.CopyN(io.Discard, c, int64(head.Size)); err != nil {
			return err
		}
		reply := func(kind uint32, data ...any) error {
			var body, out bytes.Buffer
			for _, one := range data {
				_ = binary.Write(&body, order, one)
			}
			for _, one := range []any{uint64(nbdOptionReply), head.Option, kind, uint32(body.Len()), body.Bytes()} { //nolint:gosec // a few bytes
				_ = binary.Write(&out, order, one)
			}
			_, err := c.Write(out.Bytes())
			return err
		}
		switch head.Option {
		case nbdGo:
			// The size is in the information about the export, which is kind 0.
			return errors.Join(reply(nbdInfo, uint16(0), uint64(d.size), uint16(nbdFlags)), reply(nbdAck)) //nolint:gosec // a size
		case nbdAbort:
			return errors.Join(reply(nbdAck), io.EOF)
		}
		if err := reply(nbdUnsupported); err != nil {
			return err
		}
	}
}

// answer answers one request.
func (d *volatileDisk) answer(c net.Conn, number int) error {
	var head struct {
		Magic       uint32
		Flags, Kind uint16
		Handle      uint64
		At          int64
		Size        uint32
	}
	if err := binary.Read(c, order, &head); err != nil {
		return err
	}
	if head.Magic != nbdRequest || head.Size > 1<<26 {
		return errors.New("no request of a network block device")
	}
	data := make([]byte, head.Size)
	if head.Kind == nbdWrite {
		if _, err := io.ReadFull(c, data); err != nil {
			return err
		}
	}
	read, problem, err := d.carryOut(int(head.Kind), head.At, data, number)
	if err != nil {
		return err
	}
	out := order.AppendUint32(nil, nbdReply)
	out = order.AppendUint64(order.AppendUint32(out, problem), head.Handle)
	_, err = c.Write(append(out, read...))
	return err
}

func (d *volatileDisk) carryOut(kind int, at int64, data []byte, number int) (read []byte, problem uint32, err error) {
	d.power.mu.Lock()
	defer d.power.mu.Unlock()
	if number <= d.cut {
		return nil, 0, errOff
	}
	switch kind {
	case nbdRead:
		if _, err := d.file.ReadAt(data, at); err != nil {
			return nil, 0, err
		}
		for _, w := range d.cache {
			from, to := max(at, w.at), min(at+int64(len(data)), w.at+int64(len(w.data)))
			if from < to {
				copy(data[from-at:to-at], w.data[from-w.at:])
			}
		}
		return data, 0, nil
	case nbdWrite:
		d.cache = append(d.cache, diskWrite{at, data})
		d.power.wrote(d, data)
	case nbdFlush:
		for _, w := range d.cache {
			d.store(w)
		}
		d.cache = nil
		d.power.flushed(d)
	case nbdDisconnect:
		return nil, 0, io.EOF
	default:
		return nil, nbdInvalid, nil
	}
	if number <= d.cut {
		return nil, 0, errOff
	}
	return nil, 0, nil
}

func (d *volatileDisk) store(w diskWrite) {
	if _, err := d.file.WriteAt(w.data, w.at); err != nil {
		d.t.Errorf("the disk of %s: %v", d.mount, err)
	}
}
