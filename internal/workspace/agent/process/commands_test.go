// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package process_test

import (
	"log"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// listenerVariable makes the test binary a command that says which signals it gets.
const listenerVariable = "TEST_LISTENER"

// listeners are the command itself, and its children: one in its process group, one with a group of its own, one with a
// session of its own.
var listeners = []string{"leader", "child", "group", "session"}

// listen tells the signals that come. The leader starts the others.
func listen(who string) {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	say := log.New(os.Stdout, "", 0)
	if who == "leader" {
		for name, attributes := range map[string]*syscall.SysProcAttr{
			"child": {}, "group": {Setpgid: true}, "session": {Setsid: true},
		} {
			c := exec.Command("/proc/self/exe")
			c.Env, c.Stdout, c.SysProcAttr = append(os.Environ(), listenerVariable+"="+name), os.Stdout, attributes
			if err := c.Start(); err != nil {
				log.Fatal(err)
			}
		}
	}
	say.Print(who, " is up")
	for s := range signals {
		say.Print(who, " has ", s)
	}
}
