// Package store checks the folder in which the embedded server keeps its streams,
// while no server runs on it.
//
// The server itself notices little: it takes a damaged block for the end of its
// stream, a stream with damaged settings for none (nats-server #7549), and after
// a full disk it counts a record that was never written. What it does not notice
// would be a log without its newest records, on which hosts are upgraded twice.
//
// This package finds damage and makes a sound folder ready. It does not decide
// what follows from damage: whoever runs the server does. A server that is alone
// must not run on a damaged folder; one of several may get it anew from the others.
//
// # Who finds what
//
//	fault                                           found by             when
//	------------------------------------------------------------------------------------------
//	a second server on the same folder              lock of the folder   start (natsd)
//	any file changed, cut or removed after the      seal                 next start
//	  server has stopped in order, or a large file
//	  by its disk while the server ran
//	a record changed in its block                   its checksum         start after a crash, stop
//	the last record of a stream is not whole        its checksum         start after a crash: not
//	                                                                     damage, nobody was told of it;
//	                                                                     after a stop in order: damage
//	settings of a stream changed                    their checksum       start, stop
//	a stream of the configuration, the hosts or     high-water marks     start, stop
//	  the history ends too early or is missing
//	a log ends too early, is missing, was           guard                while the log is read
//	  restored, or has other records than before    (agent/log/guard)
//	a stream folder without settings and records:   orphan stream,       start: not damage, nobody was
//	  the server died while it made the stream      Prepare              told of it; it is removed
//	index.db counts a record that was never         index dropped,       start after a crash or after a
//	  written, after a full disk                    Prepare              full disk: the server makes it
//	                                                                     anew from the records
//	the disk is full or fails while the server      health of the        every few seconds (natsd)
//	  runs                                          server
//
// The check at a start reads all files. The one at the stop reads those that the server has
// written since; of the others the seal has the checksum of the start.
//
// High-water marks and guard that are put back together with the streams, from one copy
// of the folder, are found out by the hosts: each tells the site the position of its
// journal (agent/log/guard, Witness).
package store
