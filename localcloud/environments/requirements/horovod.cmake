# SPDX-License-Identifier: Apache-2.0
# Horovod's own flags are those of a release with debug information. For a local environment they take twice the time.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -DNDEBUG" CACHE STRING "")
