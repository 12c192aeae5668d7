package site

import (
	"net"
	"sync"
)

// maxCallers is how many connections the REST API has at a time: those that
// follow events stay. Others wait until one ends.
const maxCallers = 4096

// limited is a listener that has only so many connections open at a time.
type limited struct {
	net.Listener
	room   chan struct{}
	closed chan struct{}
	close  func()
}

func limit(listener net.Listener, most int) net.Listener {
	closed := make(chan struct{})
	return &limited{Listener: listener, room: make(chan struct{}, most), closed: closed, close: sync.OnceFunc(func() { close(closed) })}
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.room <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.room
		return nil, err
	}
	return &counted{Conn: conn, leave: sync.OnceFunc(func() { <-l.room })}, nil
}

// Close implements net.Listener.
func (l *limited) Close() error {
	l.close()
	return l.Listener.Close()
}

// counted is a connection that makes room when it is closed.
type counted struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (c *counted) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
