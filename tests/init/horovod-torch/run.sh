horovodrun -np 2 -H server1:1,server2:1 python mnist.py --epochs 3
