"""Reading a stream: each trajectory once and in order, its groups, and a position that outlives its reader."""
