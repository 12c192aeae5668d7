package hardware

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
)

// Groups of the kernel's messages (rtnetlink(7)), and that of its events of devices.
const (
	groupLink, groupIPv4, groupIPv6 = 0x1, 0x10, 0x100
	groupDevices                    = 0x1
)

// Watch calls changed when it has begun, and whenever the kernel tells that an interface,
// an address or a device has changed, until ctx ends or the watch fails. Nothing is asked
// meanwhile. changed is called by two goroutines.
func (Machine) Watch(ctx context.Context, changed func()) error {
	network, err := listen(syscall.NETLINK_ROUTE, groupLink|groupIPv4|groupIPv6)
	if err != nil {
		return err
	}
	devices, err := listen(syscall.NETLINK_KOBJECT_UEVENT, groupDevices)
	if err != nil {
		return errors.Join(err, network.Close())
	}
	ended := make(chan error, 2)
	var listening sync.WaitGroup
	listening.Go(func() { ended <- receive(network, func([]byte) bool { return true }, changed) })
	listening.Go(func() { ended <- receive(devices, isHardware, changed) })
	changed()
	select {
	case <-ctx.Done():
		err = ctx.Err()
	case err = <-ended:
	}
	err = errors.Join(err, network.Close(), devices.Close())
	listening.Wait()
	return err
}

// listen opens a socket on which the kernel tells of changes.
func listen(protocol int, groups uint32) (*os.File, error) {
	fd, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, protocol)
	if err != nil {
		return nil, fmt.Errorf("cannot open a socket to the kernel: %w", err)
	}
	file := os.NewFile(uintptr(fd), "netlink")
	if err := syscall.Bind(fd, &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK, Groups: groups}); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot listen to the kernel: %w", err), file.Close())
	}
	return file, nil
}

// receive calls changed for each message that counts, until the socket is closed.
func receive(from *os.File, counts func([]byte) bool, changed func()) error {
	message := make([]byte, 8<<10)
	for {
		n, err := from.Read(message)
		switch {
		case errors.Is(err, os.ErrClosed):
			return nil
		case errors.Is(err, syscall.ENOBUFS): // Some were lost, of which any may have counted.
			changed()
		case err != nil:
			return fmt.Errorf("cannot read what the kernel tells: %w", err)
		case counts(message[:n]):
			changed()
		}
	}
}

// isHardware reports whether an event of a device is of a disk, or of memory or a processor
// that was put in or taken out.
func isHardware(event []byte) bool {
	for _, subsystem := range []string{"block", "memory", "cpu"} {
		if bytes.Contains(event, []byte("\x00SUBSYSTEM="+subsystem+"\x00")) {
			return true
		}
	}
	return false
}
